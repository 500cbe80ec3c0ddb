package redlock

import (
	"strconv"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// undo sends the undo of what happened to a key and tells what it answered.
func (c *liveConn) undo(key string, before, after image) string {
	c.t.Helper()
	return string(c.ask(appendUndo(nil, []byte(key), before, after), 1)[0])
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
}

func TestUndoOfAChange(t *testing.T) {
	m := startLiveMaster(t)
	for _, expiry := range []string{"", "100000", "31557600000000"} {
		for _, row := range undoRuns {
			t.Run(row.name+" "+expiry, func(t *testing.T) {
				m.must("DEL", "k")
				for _, c := range row.before {
					m.must(c...)
				}
				if expiry != "" {
					m.must("PEXPIRE", "k", expiry)
				}
				before := m.conn.look("k")
				for _, c := range row.run {
					m.must(c...)
				}
				after := m.conn.look("k")
				if got := m.conn.undo("k", before, after); got != undone {
					t.Fatalf("answered %q", got)
				}
				if now := m.conn.look("k"); !sameImage(now, before) {
					t.Errorf("it is %+v, and was %+v", now, before)
				}
				if got := m.conn.undo("k", before, after); got != leftAlone {
					t.Errorf("once more: answered %q", got)
				}
			})
		}
	}
}

func TestUndoOfACreation(t *testing.T) {
	m := startLiveMaster(t)
	for _, expiry := range []string{"", "100000", strconv.Itoa(1 << 52)} {
		for _, row := range undoRuns {
			t.Run(row.name+" "+expiry, func(t *testing.T) {
				m.must("DEL", "k")
				before := m.conn.look("k")
				for _, c := range row.before {
					m.must(c...)
				}
				if expiry != "" {
					m.must("PEXPIRE", "k", expiry)
				}
				if got := m.conn.undo("k", before, m.conn.look("k")); got != undone {
					t.Fatalf("answered %q", got)
				}
				if !m.conn.look("k").absent() {
					t.Error("the key is still there")
				}
			})
		}
	}
}

// Whatever happened to the key after the run, it is then another's.
func TestUndoSparesOthers(t *testing.T) {
	m := startLiveMaster(t)
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
	} {
		t.Run(name, func(t *testing.T) {
			for _, was := range []string{"", "before"} {
				m.must("DEL", "k")
				if was != "" {
					m.must("SET", "k", was)
				}
				before := m.conn.look("k")
				m.must(row.run...)
				after := m.conn.look("k")
				for _, c := range row.then {
					m.must(c...)
				}
				others := m.conn.look("k")
				if got := m.conn.undo("k", before, after); got != leftAlone {
					t.Errorf("answered %q", got)
				}
				if now := m.conn.look("k"); !sameImage(now, others) {
					t.Errorf("the other's %+v became %+v", others, now)
				}
			}
		})
	}
}

// What was there before would be gone by now, and must not come back for good.
func TestUndoOfAChangeToWhatHasExpired(t *testing.T) {
	m := startLiveMaster(t)
	m.must("SET", "k", "old", "PX", "100000")
	before := m.conn.look("k")
	m.must("SET", "k", "new", "PX", "100000")
	after := m.conn.look("k")
	before.pttl = 0 // it was about to expire
	if got := m.conn.undo("k", before, after); got != undone {
		t.Errorf("answered %q", got)
	}
	if now := m.conn.look("k"); !now.absent() {
		t.Errorf("%+v is there", now)
	}
}

// An element that expires is put back until then.
func TestElementsThatExpireArePutBackUntilThen(t *testing.T) {
	m := startLiveMaster(t)
	m.must("RPUSH", "k", "1")
	m.must("PEXPIRE", "k", "100000")
	before := m.conn.look("k")
	m.must("LPOP", "k")
	after := m.conn.look("k")
	if got := m.conn.undo("k", before, after); got != undone {
		t.Errorf("answered %q", got)
	}
	if now := m.conn.look("k"); !sameImage(now, before) {
		t.Errorf("%+v became %+v", before, now)
	}
}

// What somebody pushed meanwhile is not replaced.
func TestElementsAreNotPutBackOverOthers(t *testing.T) {
	m := startLiveMaster(t)
	m.must("RPUSH", "k", "old")
	before := m.conn.look("k")
	m.must("LPOP", "k")
	after := m.conn.look("k")
	m.must("RPUSH", "k", "new")
	others := m.conn.look("k")
	if got := m.conn.undo("k", before, after); got != leftAlone {
		t.Errorf("answered %q", got)
	}
	if now := m.conn.look("k"); !sameImage(now, others) {
		t.Errorf("%+v became %+v", others, now)
	}
}

// A request to mend that is executed late, because the master hung, must not meet
// what has come since.
func TestACopyIsReplacedInTimeOnly(t *testing.T) {
	live := startLiveMaster(t)
	for _, row := range []struct {
		late time.Duration
		want string
	}{{-time.Minute, ":0\r\n"}, {time.Minute, ":1\r\n"}} {
		live.must("SET", "k", "v")
		now, _ := parseTime(live.must("TIME"))
		seen := image{dump: live.dump("k"), pttl: noExpiry, now: now}
		frames := appendReplace(nil, []byte("k"), absentImage, seen, now+row.late.Milliseconds())
		if got := string(live.conn.ask(frames, 1)[0]); got != row.want {
			t.Errorf("%v: %q", row.late, got)
		}
	}
	// What it puts in the place of a copy lives as long as the model.
	live.must("SET", "k", "v")
	live.must("SET", "model", "w", "PX", strconv.Itoa(60000))
	now, _ := parseTime(live.must("TIME"))
	model := image{dump: live.dump("model"), pttl: 60000, now: now}
	seen := image{dump: live.dump("k"), pttl: noExpiry, now: now}
	live.conn.ask(appendReplace(nil, []byte("k"), model, seen, now+60000), 1)
	if left, _ := resp.ParseInteger(live.must("PTTL", "k")); string(live.dump("k")) != string(model.dump) || left < 1000 || left > 60000 {
		t.Errorf("it has %d ms left", left)
	}
}
