package lock

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

func TestBlockingTimeout(t *testing.T) {
	for _, row := range []struct {
		Command string
		timeout time.Duration
		blocks  bool
	}{
		{"BLPOP k l 1", time.Second, true},
		{"brpop k 0", forEver, true},
		{"BLMOVE a b LEFT RIGHT 0.0001", time.Millisecond, true}, // rounded up
		{"BRPOPLPUSH a b 1.5e1", 15 * time.Second, true},
		{"BZPOPMAX z 0x10", 16 * time.Second, true},
		{"BZMPOP .5 1 z MIN", 500 * time.Millisecond, true},
		{"BLMPOP 2 1 9 LEFT", 2 * time.Second, true},
		{"BLPOP k 1e300", forEver, true},
		{"BLPOP k 9223372036854775", forEver, true},
		{"BLPOP k nan", 0, false},
		{"BLPOP k -1", 0, false},
		{"BLPOP k 1_0", 0, false},
		{"BLPOP k soon", 0, false},
	} {
		timeout, blocks := blockingTimeout(fakeLockerCall(row.Command).Args)
		if timeout != row.timeout || blocks != row.blocks {
			t.Errorf("%s: %v, %v; want %v, %v", row.Command, timeout, blocks, row.timeout, row.blocks)
		}
	}
}

// TestBlockingCommand: the plane tries a blocking command until it gets something, its
// timeout passes or its client goes, and no longer.
func TestBlockingCommand(t *testing.T) {
	const null, popped = "*-1\r\n", "*2\r\n$1\r\nk\r\n$1\r\n1\r\n"
	rows := []struct {
		Command  string
		arrives  time.Duration // when there is something to pop; 0: never
		gone     time.Duration // when the client goes; 0: never
		reply    string
		min, max time.Duration
	}{
		{"BLPOP k 2", 0, 0, null, 2 * time.Second, 2 * time.Second},
		{"BLPOP k 0.25", 0, 0, null, 250 * time.Millisecond, 250 * time.Millisecond},
		{"BLPOP k 2", time.Second, 0, popped, time.Second, 1100 * time.Millisecond},
		{"BLPOP k 0", time.Hour, 0, popped, time.Hour, time.Hour + 100*time.Millisecond},
		{"BLPOP k 0", 0, time.Second, null, time.Second, time.Second},
		{"BLMPOP 1.5 1 k LEFT", 0, 0, null, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"BLMOVE k l LEFT RIGHT 1", 0, 0, null, time.Second, time.Second},
		{"BZPOPMIN k 1", 0, 0, null, time.Second, time.Second},
		{"XREAD STREAMS k 0", 0, 0, null, 0, 0},
		{"LPOP k", 0, 0, null, 0, 0},
	}
	for _, row := range rows {
		synctest.Test(t, func(t *testing.T) {
			started := time.Now()
			nothing := null
			if strings.HasPrefix(row.Command, "BLMOVE") {
				nothing = "$-1\r\n" // its reply in a transaction, but not to a timeout
			}
			p := newFakeLockerPlane(func(any) redlock.Outcome {
				if row.arrives > 0 && time.Since(started) >= row.arrives {
					return fakeLockerReply(popped)
				}
				return fakeLockerReply(nothing)
			})
			ctx := t.Context()
			if row.gone > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.gone)
				defer cancel()
			}
			reply := string(p.Do(ctx, nil, fakeLockerCall(row.Command)))
			took := time.Since(started)
			if reply != row.reply || took < row.min || took > row.max {
				t.Errorf("%s: %q after %v, want %q after %v to %v", row.Command, reply, took, row.reply, row.min, row.max)
			}
			tries := len(p.locker.asked)
			if least, most := int(took/blockingPauseMost), int(took/blockingPauseLeast)+2; tries < least || tries > most {
				t.Errorf("%s: %d tries in %v", row.Command, tries, took)
			}
		})
	}
}

// TestBlockingCommandInDoubt: the plane waits out a short lack of quorum and reports a
// lasting one. A timeout without a quorum is not answered with "nothing there".
func TestBlockingCommandInDoubt(t *testing.T) {
	const null, popped = "*-1\r\n", "*2\r\n$1\r\nk\r\n$1\r\n1\r\n"
	noQuorum := "-" + fakeLockerNoQuorum.NoQuorumError() + "\r\n"
	for _, row := range []struct {
		Command     string
		doubt, sure time.Duration // from when to when there is no quorum
		arrives     time.Duration // 0: never
		reply       string
		min, max    time.Duration
	}{
		{"BLPOP k 10", 0, time.Second, 5 * time.Second, popped, 5 * time.Second, 5100 * time.Millisecond},
		{"BLPOP k 10", 3 * time.Second, 4 * time.Second, 0, null, 10 * time.Second, 10 * time.Second},
		{"BLPOP k 10", 0, time.Hour, 0, noQuorum, blockingDoubt, blockingDoubt + blockingPauseMost},
		{"BLPOP k 0", 5 * time.Second, time.Hour, 0, noQuorum, 5*time.Second + blockingDoubt, 5*time.Second + blockingDoubt + 2*blockingPauseMost},
		{"BLPOP k 1", 0, time.Hour, 0, noQuorum, time.Second, time.Second},
		{"BLPOP k 6", 5 * time.Second, time.Hour, 0, noQuorum, 6 * time.Second, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			started := time.Now()
			p := newFakeLockerPlane(func(any) redlock.Outcome {
				switch at := time.Since(started); {
				case at >= row.doubt && at < row.sure:
					return fakeLockerNoQuorum
				case row.arrives > 0 && at >= row.arrives:
					return fakeLockerReply(popped)
				}
				return fakeLockerReply(null)
			})
			reply := p.ask(t, row.Command)
			if took := time.Since(started); reply != row.reply || took < row.min || took > row.max {
				t.Errorf("%s: %q after %v, want %q after %v to %v", row.Command, reply, took, row.reply, row.min, row.max)
			}
		})
	}
}

// TestBlockingCommandEndsOnError: a command that the masters refuse does not wait.
func TestBlockingCommandEndsOnError(t *testing.T) {
	for _, outcome := range []redlock.Outcome{fakeLockerRefused, fakeLockerReply("-ERR timeout is negative\r\n")} {
		p := newFakeLockerPlane(fakeLockerAnswers(outcome))
		if reply := p.ask(t, "BLPOP k 10"); !strings.HasPrefix(reply, "-") || len(p.locker.asked) != 1 {
			t.Errorf("%q after %d tries", reply, len(p.locker.asked))
		}
	}
}

// TestBlockingStreamReadsAreRefused: no client library needs them to wait for a lock.
func TestBlockingStreamReadsAreRefused(t *testing.T) {
	for command, refused := range map[string]bool{
		"XREAD BLOCK 20 STREAMS s $":                             true,
		"XREAD COUNT 5 block 0 STREAMS s $":                      true,
		"XREAD COUNT BLOCK STREAMS s $":                          false,
		"XREAD COUNT 5 STREAMS BLOCK 20":                         false,
		"XREADGROUP GROUP g c NOACK BLOCK 30 STREAMS s >":        true,
		"XREADGROUP GROUP BLOCK BLOCK COUNT 1 NOACK STREAMS s >": false,
	} {
		p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerReply("*-1\r\n")))
		reply := p.ask(t, command)
		name := strings.Fields(command)[0]
		switch {
		case refused && (reply != string(wire.ErrNotOnLockKeys(name+" with block")) || len(p.locker.asked) > 0):
			t.Errorf("%s: %q after %d requests, want it refused", command, reply, len(p.locker.asked))
		case !refused && (reply != "*-1\r\n" || len(p.locker.asked) != 1):
			t.Errorf("%s: %q after %d requests, want it asked once", command, reply, len(p.locker.asked))
		}
	}
}
