package redlock

import (
	"bytes"
	"strconv"
	"testing"

	"redlock-proxy/redlock/resp"
)

// look takes an image of a key by itself. One for which the server was held up
// on the way is taken again, as its expiry cannot be told to the millisecond.
func (c *liveConn) look(key string) image {
	c.t.Helper()
	for {
		var frames []byte
		for _, command := range [][]string{{"MULTI"}, {"TIME"}, {"PTTL", key}, {"TIME"}, {"DUMP", key}, {"EXEC"}} {
			frames = resp.AppendCommand(frames, command...)
		}
		results, err := resp.Elements(c.ask(frames, 6)[5])
		if err != nil {
			c.t.Fatal(err)
		}
		now, ok1 := parseTime(results[0])
		then, ok2 := parseTime(results[2])
		i, ok3 := parseImage(results[3], results[1], now)
		if !ok1 || !ok2 || !ok3 {
			c.t.Fatalf("no image of %s: %q", key, results)
		}
		if then-now <= 1 {
			return i
		}
	}
}

// undo sends the undo of what happened to a key and tells what it answered.
func (c *liveConn) undo(key string, before, after image) string {
	c.t.Helper()
	return string(c.ask(appendUndo(nil, []byte(key), before, after), 1)[0])
}

const (
	undone    = ":1\r\n"
	leftAlone = ":0\r\n"
)

// sameImage compares images by what they say, not by when they were taken.
func sameImage(a, b image) bool {
	return bytes.Equal(a.dump, b.dump) && a.absent() == b.absent() && near(a.expiry(), b.expiry(), expiryTolerance)
}

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
