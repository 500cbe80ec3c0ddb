package effect

import (
	"strconv"
	"testing"
	"time"

	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
)

// undo sends the undo of what happened to a key and tells what it answered.
func undo(c *livetest.Conn, key string, before, after Image) string {
	return string(c.Ask(AppendUndo(nil, []byte(key), before, after), 1)[0])
}

const (
	undone    = ":1\r\n"
	leftAlone = ":0\r\n"
)

// Every type a lock may have, as it was and as a run left it.
var undoRuns = []struct {
	name        string
	before, run [][]string
}{
	{"string", [][]string{{"SET", "k", "old"}}, [][]string{{"SET", "k", "new", "KEEPTTL"}}},
	{"number", [][]string{{"SET", "k", "1"}}, [][]string{{"INCR", "k"}}},
	{"hash", [][]string{{"HSET", "k", "f", "1", "g", "2"}}, [][]string{{"HINCRBY", "k", "f", "1"}}},
	{"list", [][]string{{"RPUSH", "k", "a", "b"}}, [][]string{{"LPUSH", "k", "c"}}},
	{"set", [][]string{{"SADD", "k", "1", "2"}}, [][]string{{"SADD", "k", "x"}}},
	{"sorted set", [][]string{{"ZADD", "k", "1.5", "a", "-inf", "b"}}, [][]string{{"ZINCRBY", "k", "1", "a"}}},
	{"stream", [][]string{{"XADD", "k", "1-1", "f", "v"}}, [][]string{{"XADD", "k", "2-1", "f", "w"}}},
	{"another type", [][]string{{"SADD", "k", "a"}}, [][]string{{"DEL", "k"}, {"SET", "k", "v"}}},
	{"deleted", [][]string{{"RPUSH", "k", "1"}}, [][]string{{"LPOP", "k"}}},
}

func TestUndo(t *testing.T) {
	m := livetest.Start(t)
	for _, expiry := range []string{"", "100000", "31557600000000", strconv.Itoa(1 << 52)} {
		for _, row := range undoRuns {
			t.Run(row.name+" "+expiry, func(t *testing.T) {
				m.Must("DEL", "k")
				absent := look(t, m.Conn, "k")
				for _, c := range row.before {
					m.Must(c...)
				}
				if expiry != "" {
					m.Must("PEXPIRE", "k", expiry)
				}
				before := look(t, m.Conn, "k")
				for _, c := range row.run {
					m.Must(c...)
				}
				after := look(t, m.Conn, "k")
				if got := undo(m.Conn, "k", before, after); got != undone {
					t.Fatalf("answered %q", got)
				}
				if now := look(t, m.Conn, "k"); !sameImage(now, before) {
					t.Errorf("it is %+v, and was %+v", now, before)
				}
				if got := undo(m.Conn, "k", before, after); got != leftAlone {
					t.Errorf("once more: answered %q", got)
				}
				if got := undo(m.Conn, "k", absent, before); got != undone {
					t.Errorf("what created it: answered %q", got)
				}
				if !look(t, m.Conn, "k").Absent() {
					t.Error("the key is still there")
				}
			})
		}
	}
}

// Whatever happened to the key after the run, it is then another's.
func TestUndoSparesOthers(t *testing.T) {
	m := livetest.Start(t)
	for name, row := range map[string]struct {
		run  []string
		then [][]string
	}{
		"equal value, later expiry":   {[]string{"SET", "k", "1", "PX", "100000"}, [][]string{{"SET", "k", "1", "PX", "100010"}}},
		"equal value, earlier expiry": {[]string{"SET", "k", "1", "PX", "100000"}, [][]string{{"SET", "k", "1", "PX", "90000"}}},
		"equal value, no expiry":      {[]string{"SET", "k", "1", "PX", "100000"}, [][]string{{"PERSIST", "k"}}},
		"equal value, now an expiry":  {[]string{"SET", "k", "1"}, [][]string{{"SET", "k", "1", "PX", "100000"}}},
		"extended":                    {[]string{"SET", "k", "1", "PX", "100000"}, [][]string{{"PEXPIRE", "k", "200000"}}},
		"other value, equal expiry":   {[]string{"SET", "k", "1", "PX", "100000"}, [][]string{{"SET", "k", "2", "KEEPTTL"}}},
		"other type":                  {[]string{"SET", "k", "1"}, [][]string{{"DEL", "k"}, {"SADD", "k", "1"}}},
		"released":                    {[]string{"SET", "k", "1"}, [][]string{{"DEL", "k"}}},
		"pushed after a deletion":     {[]string{"DEL", "k"}, [][]string{{"RPUSH", "k", "new"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, was := range []string{"", "before"} {
				m.Must("DEL", "k")
				if was != "" {
					m.Must("SET", "k", was)
				}
				before := look(t, m.Conn, "k")
				m.Must(row.run...)
				after := look(t, m.Conn, "k")
				for _, c := range row.then {
					m.Must(c...)
				}
				others := look(t, m.Conn, "k")
				if got := undo(m.Conn, "k", before, after); got != leftAlone {
					t.Errorf("answered %q", got)
				}
				if now := look(t, m.Conn, "k"); !sameImage(now, others) {
					t.Errorf("the other's %+v became %+v", others, now)
				}
			}
		})
	}
}

// What was there before would be gone by now, and must not come back for good.
func TestUndoOfAChangeToWhatHasExpired(t *testing.T) {
	m := livetest.Start(t)
	m.Must("SET", "k", "old", "PX", "100000")
	before := look(t, m.Conn, "k")
	m.Must("SET", "k", "new", "PX", "100000")
	after := look(t, m.Conn, "k")
	before.PTTL = 0 // it was about to expire
	if got := undo(m.Conn, "k", before, after); got != undone {
		t.Errorf("answered %q", got)
	}
	if now := look(t, m.Conn, "k"); !now.Absent() {
		t.Errorf("%+v is there", now)
	}
}

// A request to mend that is executed late, because the master hung, must not meet
// what has come since.
func TestACopyIsReplacedInTimeOnly(t *testing.T) {
	live := livetest.Start(t)
	for _, row := range []struct {
		late time.Duration
		want string
	}{{-time.Minute, ":0\r\n"}, {time.Minute, ":1\r\n"}} {
		live.Must("SET", "k", "v")
		now, _ := parseTime(live.Must("TIME"))
		seen := Image{Dump: live.Dump("k"), PTTL: NoExpiry, Now: now}
		frames := AppendReplace(nil, []byte("k"), Missing, seen, now+row.late.Milliseconds())
		if got := string(live.Ask(frames, 1)[0]); got != row.want {
			t.Errorf("%v: %q", row.late, got)
		}
	}
	// What it puts in the place of a copy lives as long as the model.
	live.Must("SET", "k", "v")
	live.Must("SET", "model", "w", "PX", strconv.Itoa(60000))
	now, _ := parseTime(live.Must("TIME"))
	model := Image{Dump: live.Dump("model"), PTTL: 60000, Now: now}
	seen := Image{Dump: live.Dump("k"), PTTL: NoExpiry, Now: now}
	live.Ask(AppendReplace(nil, []byte("k"), model, seen, now+60000), 1)
	if left, _ := resp.ParseInteger(live.Must("PTTL", "k")); string(live.Dump("k")) != string(model.Dump) || left < 1000 || left > 60000 {
		t.Errorf("it has %d ms left", left)
	}
}
