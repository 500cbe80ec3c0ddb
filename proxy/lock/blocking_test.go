package lock

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/wire"
)

// TestBlockingCommands: only a command that blocks is tried until its timeout.
func TestBlockingCommands(t *testing.T) {
	for line, waits := range map[string]time.Duration{"BLPOP k 2": 2 * time.Second, "XREAD STREAMS k 0": 0, "LPOP k": 0} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerReply("*-1\r\n")))
			if reply, took := p.ask(t, line), time.Since(began); reply != "*-1\r\n" || took != waits || (len(p.locker.asked) > 1) != (waits > 0) {
				t.Errorf("%s: %q after %v and %d tries", line, reply, took, len(p.locker.asked))
			}
		})
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
