package lock

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock"
)

// TestSeveralKeys: the plane asks once about each key and joins the answers as Redis
// counts them.
func TestSeveralKeys(t *testing.T) {
	outcomes := map[string]redlock.Outcome{
		"held":  fakeLockerValue(redlock.Won, "v"),
		"held2": fakeLockerValue(redlock.Won, "w"),
		"free":  fakeLockerLost,
		"hash":  fakeLockerRefused,
		"lost":  fakeLockerNoQuorum,
	}
	p := newFakeLockerPlane(nil)
	p.locker.answer = func(request any) redlock.Outcome {
		var key string
		switch r := request.(type) {
		case redlock.ReleaseRequest:
			key = string(r.Key)
		case fakeLockerGet:
			key = r.Key.(string)
		case fakeLockerExists:
			key = r.Key.(string)
		}
		return outcomes[key]
	}
	const noQuorum = "-QUORUMLOST 2 of 5 lock masters can vote, 3 needed (deploy/INCIDENTS.md#quorumlost)\r\n"
	for _, row := range []struct {
		Command, reply string
		questions      int
	}{
		{"DEL held held free held2", ":2\r\n", 3},
		{"UNLINK free", ":0\r\n", 1},
		{"DEL held lost held2", noQuorum, 3},
		{"DEL hash lost", noQuorum, 2},
		{"DEL lost held", noQuorum, 2},
		{"DEL hash held", "-" + fakeLockerRefused.Err + "\r\n", 2},
		{"DEL held hash", "-" + fakeLockerRefused.Err + "\r\n", 2},
		{"EXISTS held held free held2", ":3\r\n", 3},
		{"TOUCH held held", ":2\r\n", 1},
		{"EXISTS held lost", noQuorum, 2},
		{"MGET held free held2 held hash", "*5\r\n$1\r\nv\r\n$-1\r\n$1\r\nw\r\n$1\r\nv\r\n$-1\r\n", 4},
		{"MGET held lost hash", noQuorum, 3},
		{"MGET free", "*1\r\n$-1\r\n", 1},
	} {
		p.locker.asked = nil
		if reply := p.ask(t, row.Command); reply != row.reply || len(p.locker.asked) != row.questions {
			t.Errorf("%s: %q after %d questions, want %q after %d", row.Command, reply, len(p.locker.asked), row.reply, row.questions)
		}
	}
}

// TestLongRepliesOfMGETAreRefused: the values of one MGET have a limit together.
func TestLongRepliesOfMGETAreRefused(t *testing.T) {
	p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerValue(redlock.Won, strings.Repeat("x", 1<<20))))
	if got := p.ask(t, "MGET a b c d"); len(got) < 4<<20 {
		t.Errorf("4 values: %.100q", got)
	}
	if got := p.ask(t, "MGET a b c d e"); got != string(errorLongReply) {
		t.Errorf("5 values: %.100q", got)
	}
}

// TestOnlyLockKeysAreAsked: if a command mixes lock keys and others, the plane answers
// for the lock keys only.
func TestOnlyLockKeysAreAsked(t *testing.T) {
	p := newFakeLockerPlane(nil)
	for _, command := range []string{"DEL a b c", "MGET a b c", "EXISTS a b c"} {
		call := fakeLockerCall(command)
		call.Route.Lock = []bool{true, false, true}
		p.Do(t.Context(), nil, call)
	}
	want := []string{"exists 0 a", "exists 0 c", "get 0 a", "get 0 c", "release 0 a", "release 0 c"}
	if got := p.locker.requests(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// TestKeysAreAskedAtOnce: the plane asks about several keys at a time, up to a limit.
func TestKeysAreAskedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		p := newFakeLockerPlane(func(any) redlock.Outcome {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			return fakeLockerWon
		})
		line := "DEL"
		for i := range 3 * concurrentKeys {
			line += fmt.Sprint(" ", i)
		}
		started := time.Now()
		if reply, want := p.ask(t, line), fmt.Sprintf(":%d\r\n", 3*concurrentKeys); reply != want {
			t.Errorf("reply %q, want %q", reply, want)
		}
		if took := time.Since(started); took != 3*time.Second || most.Load() > concurrentKeys || now.Load() != 0 {
			t.Errorf("took %v with %d at once; %d still run", took, most.Load(), now.Load())
		}
	})
}
