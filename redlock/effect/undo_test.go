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
