package console

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/scan"
)

// fakeReader has the same copies under each of its keys.
type fakeReader struct {
	keys   []string
	copies []scan.Copy
	first  []scan.Copy // of the first key, if not nil
	all    bool
}

func (f *fakeReader) Look(_ int, keys [][]byte) [][]scan.Copy { return [][]scan.Copy{f.copies} }
func (f *fakeReader) Outstanding(int, []byte) []bool          { return []bool{false, true} }

func (f *fakeReader) Walk(_ context.Context, wants func(int, []byte) bool, each func(int, []byte, []scan.Copy) bool) bool {
	for i, key := range f.keys {
		copies := f.copies
		if i == 0 && f.first != nil {
			copies = f.first
		}
		if wants(3, []byte(key)) && !each(3, []byte(key), copies) {
			return false
		}
	}
	return f.all
}

type fakeLocks struct{ asked []string }

func (f *fakeLocks) Do(_ context.Context, dst []byte, call lock.Command) []byte {
	f.asked = append(f.asked, string(call.Args[0])+" "+string(call.Args[1]))
	return append(dst, ":1\r\n"...)
}

func twoCopies() []scan.Copy {
	c := scan.Copy{Heard: true, Votes: true, Type: "string", Text: []byte("secret"), Digest: "a1b2c3d4", TTL: 17600 * time.Millisecond}
	return []scan.Copy{c, c}
}

func TestSummary(t *testing.T) {
	held := scan.Holding{State: scan.Held, Copy: scan.Copy{Digest: "a1b2c3d4", TTL: 17600 * time.Millisecond}, Holders: 3, Masters: 5, Needed: 3}
	forEver := held
	forEver.TTL = scan.NoTTL
	few := held
	few.State, few.Holders = scan.Free, 2
	disputed, unknown := few, few
	disputed.State = scan.Disputed
	unknown.State, unknown.Missing = scan.Unknown, 2
	for _, row := range []struct {
		h    scan.Holding
		held time.Duration
		want string
	}{
		{held, 12400 * time.Millisecond, "held by 3 of 5 (a1b2c3d4) for 12.4 s, 17.6 s left"},
		{held, -1, "held by 3 of 5 (a1b2c3d4), 17.6 s left"},
		{forEver, -1, "held by 3 of 5 (a1b2c3d4), without TTL"},
		{disputed, -1, "held, but the copies differ: the most frequent content (a1b2c3d4) is on 2 of 5"},
		{unknown, -1, "unknown: 2 of 5 cannot vote, and 2 of 5 hold it (a1b2c3d4)"},
		{scan.Holding{State: scan.Unknown, Missing: 3, Masters: 5}, -1, "unknown: 3 of 5 cannot vote"},
		{few, -1, "free: a copy is on 2 of 5 only, and 3 are needed"},
		{scan.Holding{Masters: 5}, -1, "free: no master that may vote holds it"},
	} {
		if got := summary(row.h, row.held); got != row.want {
			t.Errorf("got %q, want %q", got, row.want)
		}
	}
}

// WHY names the masters that do not vote, who took the lock, and who was refused.
func TestWhy(t *testing.T) {
	c := testConsole()
	c.Reader = &fakeReader{copies: twoCopies()}
	client := enter(c)
	client.Introduce(events.Identity{Name: "worker"})
	c.Journal.Note(events.KeyEvent{Key: []byte("lock:a"), Client: client, Verdict: events.Granted, Value: []byte("secret"), At: time.Now()})
	got := ask(c, "REDLOCK WHY lock:a", wire.RESP2)
	for _, want := range []string{
		"held by 2 of 2 (a1b2c3d4) for 0.", "17.6 s left; master 2 is quarantined until 05:10:00Z\r\n", "10.0.0.3:1", "worker", "granted", "owes-answer\r\n:1\r\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q: %q", want, got)
		}
	}
	if strings.Contains(got, "secret") {
		t.Errorf("it shows the value: %q", got)
	}
	if got := ask(c, "REDLOCK WHY app", wire.RESP2); got != string(errNoLockKey) {
		t.Errorf("got %q", got)
	}
}

// BREAK is DEL on the lock plane. The log has who did it, and never the value.
func TestBreak(t *testing.T) {
	c, log, locks := testConsole(), new(strings.Builder), new(fakeLocks)
	c.Reader, c.Locks, c.Log = &fakeReader{copies: twoCopies()}, locks, slog.New(slog.NewTextHandler(log, nil))
	if got := ask(c, "REDLOCK BREAK lock:a", wire.RESP2); got != ":1\r\n" || strings.Join(locks.asked, ",") != "DEL lock:a" {
		t.Errorf("got %q, asked %q", got, locks.asked)
	}
	for _, want := range []string{"key=lock:a", "user=alice", "digest=a1b2c3d4", "level=WARN"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("it lacks %q: %s", want, log)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has the value: %s", log)
	}
	if got := ask(c, "REDLOCK BREAK app", wire.RESP2); got != string(errNoLockKey) || len(locks.asked) > 1 {
		t.Errorf("got %q, asked %q", got, locks.asked)
	}
}

// LOCKS shows the locks of all rules, COUNT at most.
func TestLocks(t *testing.T) {
	c := testConsole()
	c.Reader = &fakeReader{copies: twoCopies(), keys: []string{"lock:a", "app", "secret:a", "lock:b"}, all: true}
	for _, row := range []struct {
		line, begins string
		shows, hides string
	}{
		{"REDLOCK LOCKS", "*6\r\n$8\r\ncomplete\r\n:1\r\n$4\r\nmore\r\n:0\r\n$5\r\nlocks\r\n*3\r\n", "lock:a secret:a lock:b", "app"},
		{"REDLOCK LOCKS MATCH l*", "*6\r\n$8\r\ncomplete\r\n:1\r\n$4\r\nmore\r\n:0\r\n$5\r\nlocks\r\n*2\r\n", "lock:a lock:b", "secret:a"},
		{"REDLOCK LOCKS COUNT 1", "*6\r\n$8\r\ncomplete\r\n:0\r\n$4\r\nmore\r\n:1\r\n$5\r\nlocks\r\n*1\r\n", "lock:a", "lock:b"},
		{"REDLOCK LOCKS MATCH *" + strings.Repeat("*", longestGlob), string(errGlob), "", "lock:"},
		{"REDLOCK LOCKS COUNT x", string(wire.ErrNotInteger), "", "lock:"},
		{"REDLOCK LOCKS COUNT 10001", string(errCount), "", "lock:"},
		{"REDLOCK LOCKS COUNT", string(wire.ErrSyntax), "", "lock:"},
		{"REDLOCK LOCKS ALL 1", string(wire.ErrSyntax), "", "lock:"},
	} {
		got := ask(c, row.line, wire.RESP2)
		if !strings.HasPrefix(got, row.begins) || strings.Contains(got, row.hides) {
			t.Errorf("%s: %q", row.line, got)
		}
		for _, key := range strings.Fields(row.shows) {
			if !strings.Contains(got, key+"\r\n$2\r\ndb\r\n:3\r\n$4\r\ntype\r\n$6\r\nstring\r\n$6\r\ndigest\r\n$8\r\na1b2c3d4\r\n$6\r\nholder\r\n$-1\r\n$7\r\nheld-ms\r\n$-1\r\n$6\r\nttl-ms\r\n:17600\r\n$7\r\nmasters\r\n:2\r\n$7\r\nwaiters\r\n:0\r\n") {
				t.Errorf("%s lacks %s: %q", row.line, key, got)
			}
		}
	}
}

// Held shows the locks of all rules, each once, and no value. It waits for its turn.
func TestHeld(t *testing.T) {
	c := testConsole()
	c.Reader = &fakeReader{copies: twoCopies(), keys: []string{"lock:a", "app", "lock:a", "secret:a", "lock:b"}, all: true}
	client := enter(c)
	c.Journal.Note(events.KeyEvent{DB: 3, Key: []byte("lock:a"), Client: client, Verdict: events.Granted, Value: []byte("secret"), At: time.Now()})
	client.Begin("set", []byte("lock:b"), time.Now())
	client.Introduce(events.Identity{DB: 3})
	h, ok := c.Held(t.Context(), "", 3)
	if !ok || !h.Complete || h.More || len(h.Locks) != 3 {
		t.Fatalf("%v %+v", ok, h)
	}
	for i, want := range []HeldLock{{Key: "lock:a", Known: true}, {Key: "secret:a"}, {Key: "lock:b", Waiters: 1}} {
		l := h.Locks[i]
		if l.Key != want.Key || l.DB != 3 || l.Known != want.Known || l.Waiters != want.Waiters || l.Holding.Digest != "a1b2c3d4" || l.Holding.Text != nil {
			t.Errorf("%+v", l)
		}
	}
	if h, ok = c.Held(t.Context(), "", 2); !ok || !h.More || h.Complete || len(h.Locks) != 2 {
		t.Errorf("%v %+v", ok, h)
	}
	for what, row := range map[string]struct {
		second   scan.Copy
		complete bool
	}{"free": {scan.Copy{Heard: true, Votes: true}, true}, "unknown": {scan.Copy{}, false}} {
		c.Reader = &fakeReader{copies: []scan.Copy{twoCopies()[0], row.second}, keys: []string{"lock:a"}, all: true}
		if h, ok = c.Held(t.Context(), "", 3); !ok || h.Complete != row.complete || len(h.Locks) != 0 {
			t.Errorf("%s: %v %+v", what, ok, h)
		}
	}
	// What the first look does not show, a later one may.
	c.Reader = &fakeReader{copies: twoCopies(), first: []scan.Copy{twoCopies()[0], {}}, keys: []string{"lock:a", "lock:a"}, all: true}
	if h, ok = c.Held(t.Context(), "", 3); !ok || !h.Complete || len(h.Locks) != 1 {
		t.Errorf("%v %+v", ok, h)
	}
	c.walking <- struct{}{}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := c.Held(over, "", 3); ok {
		t.Error("two list locks at a time")
	}
}
