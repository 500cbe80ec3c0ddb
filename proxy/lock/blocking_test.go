package lock

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// request makes the request of a command on keys, which is given as words.
func request(line string) redlock.RunRequest {
	args := bytes.Fields([]byte(line))
	r := redlock.RunRequest{Args: args}
	at, _ := route.Builtin().Lookup(args).AppendKeys(nil, args)
	for _, i := range at {
		r.Keys = append(r.Keys, args[i])
	}
	return r
}

// blocked runs a blocking command on masters that announce no changes. It returns the reply, or
// noQuorum, and the number of tries.
func blocked(ctx context.Context, line string, answer func() redlock.Outcome) (reply string, tries int) {
	p := newFakeLockerPlane(func(any) redlock.Outcome { return answer() })
	o := p.runBlocking(ctx, request(line))
	return replyOf(o), len(p.locker.requests())
}

const noQuorum = "no quorum"

func replyOf(o redlock.Outcome) string {
	switch {
	case o.Verdict == redlock.NoQuorum:
		return noQuorum
	case o.Err != "":
		return "-" + o.Err
	}
	return string(o.Reply)
}

func replied(reply string) redlock.Outcome {
	return redlock.Outcome{Verdict: redlock.Won, Reply: []byte(reply)}
}

func TestBlockingTimeout(t *testing.T) {
	for _, row := range []struct {
		Command string
		timeout time.Duration
	}{
		{"BLPOP k l 1", time.Second},
		{"brpop k 0", forEver},
		{"BLMOVE a b LEFT RIGHT 0.0001", time.Millisecond}, // rounded up
		{"BRPOPLPUSH a b 1.5e1", 15 * time.Second},
		{"BZPOPMAX z 0x10", 16 * time.Second},
		{"BZMPOP .5 1 z MIN", 500 * time.Millisecond},
		{"BLMPOP 2 1 9 LEFT", 2 * time.Second},
		{"BLPOP k 1e300", forEver},
		{"BLPOP k 9223372036854775", forEver},
		{"BLPOP k 9223372036.8539", forEver}, // the least that is for ever
		{"BLPOP k 9223372036.8529", 9223372036853 * time.Millisecond},
		{"BLPOP k 0X10", 16 * time.Second},
		{"BLPOP k 0x1p3", 8 * time.Second},
		{"BLPOP k 0x1_0", 0},
		{"BLPOP k nan", 0},
		{"BLPOP k -1", 0},
		{"BLPOP k 1_0", 0},
		{"BLPOP k soon", 0},
	} {
		if timeout := timeoutOf(request(row.Command).Args); timeout != row.timeout {
			t.Errorf("%s: %v, want %v", row.Command, timeout, row.timeout)
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
	}
	for _, row := range rows {
		synctest.Test(t, func(t *testing.T) {
			started := time.Now()
			nothing := null
			if strings.HasPrefix(row.Command, "BLMOVE") {
				nothing = "$-1\r\n" // its reply in a transaction, but not to a timeout
			}
			answer := func() redlock.Outcome {
				if row.arrives > 0 && time.Since(started) >= row.arrives {
					return replied(popped)
				}
				return replied(nothing)
			}
			ctx := t.Context()
			if row.gone > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.gone)
				defer cancel()
			}
			reply, tries := blocked(ctx, row.Command, answer)
			took := time.Since(started)
			if reply != row.reply || took < row.min || took > row.max {
				t.Errorf("%s: %q after %v, want %q after %v to %v", row.Command, reply, took, row.reply, row.min, row.max)
			}
			if least, most := int(took/(100*time.Millisecond)), int(took/(50*time.Millisecond))+2; tries < least || tries > most {
				t.Errorf("%s: %d tries in %v", row.Command, tries, took)
			}
		})
	}
}

// A command stands in the lines of the keys from which it takes, and a module's in none.
func TestWhatABlockingCommandWaitsFor(t *testing.T) {
	for line, want := range map[string]string{
		"BLPOP a b 0": "1 [a b]", "BRPOP a b 0": "1 [a b]", "BLMPOP 0 2 a b LEFT": "1 [a b]", "BLMOVE a b LEFT RIGHT 0": "1 [a]", "BRPOPLPUSH a b 0": "1 [a]",
		"BZPOPMIN a b 0": "2 [a b]", "BZPOPMAX a b 0": "2 [a b]", "BZMPOP 0 2 a b MIN": "2 [a b]", "MODULE.POP a 0": "1 []",
	} {
		r := redlock.RunRequest{Args: bytes.Fields([]byte(line)), Keys: [][]byte{[]byte("a"), []byte("b")}}
		if kind, keys := waitsOn(&r); fmt.Sprintf("%d %s", kind, keys) != want {
			t.Errorf("%s: %d %s, want %s", line, kind, keys, want)
		}
	}
}

// In RESP3 the masters' null, and the reply after the timeout, is another.
func TestBlockingCommandInRESP3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, began := request("BLPOP k 1"), time.Now()
		r.RESP3 = true
		for _, null := range []string{nullRESP3, nullArray} {
			p := newFakeLockerPlane(fakeLockerAnswers(replied(null)))
			if reply := replyOf(p.runBlocking(t.Context(), r)); reply != nullRESP3 {
				t.Errorf("%q", reply)
			}
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("they took %v", took)
		}
	})
}

// A command whose time is over before its turn comes is tried once all the same.
func TestABlockingCommandIsTriedAtLeastOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeLockerPlane(func(request any) redlock.Outcome {
			if string(request.(redlock.RunRequest).Args[2]) == "0" {
				time.Sleep(10 * time.Millisecond)
			}
			return replied("+a")
		})
		go p.runBlocking(t.Context(), request("BLPOP k 0"))
		synctest.Wait()
		began := time.Now()
		if reply := replyOf(p.runBlocking(t.Context(), request("BLPOP k 0.001"))); reply != "+a" || time.Since(began) != time.Millisecond {
			t.Errorf("%q after %v", reply, time.Since(began))
		}
		time.Sleep(10 * time.Millisecond)
	})
}

// TestBlockingCommandWithoutQuorum: the plane waits out a short lack of quorum and reports a
// lasting one. A timeout without a quorum is not answered with "nothing there".
func TestBlockingCommandWithoutQuorum(t *testing.T) {
	const null, popped = "*-1\r\n", "*2\r\n$1\r\nk\r\n$1\r\n1\r\n"
	for _, row := range []struct {
		Command        string
		lost, regained time.Duration // from when to when there is no quorum
		arrives        time.Duration // 0: never
		reply          string
		min, max       time.Duration
	}{
		{"BLPOP k 10", 0, time.Second, 5 * time.Second, popped, 5 * time.Second, 5100 * time.Millisecond},
		{"BLPOP k 10", 3 * time.Second, 4 * time.Second, 0, null, 10 * time.Second, 10 * time.Second},
		{"BLPOP k 10", 0, time.Hour, 0, noQuorum, undecidedMost, undecidedMost + 100*time.Millisecond},
		{"BLPOP k 0", 5 * time.Second, time.Hour, 0, noQuorum, 5*time.Second + undecidedMost, 5*time.Second + undecidedMost + 200*time.Millisecond},
		{"BLPOP k 1", 0, time.Hour, 0, noQuorum, time.Second, time.Second},
		{"BLPOP k 6", 5 * time.Second, time.Hour, 0, noQuorum, 6 * time.Second, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			started := time.Now()
			reply, _ := blocked(t.Context(), row.Command, func() redlock.Outcome {
				switch at := time.Since(started); {
				case at >= row.lost && at < row.regained:
					return redlock.Outcome{Verdict: redlock.NoQuorum}
				case row.arrives > 0 && at >= row.arrives:
					return replied(popped)
				}
				return replied(null)
			})
			if took := time.Since(started); reply != row.reply || took < row.min || took > row.max {
				t.Errorf("%s: %q after %v, want %q after %v to %v", row.Command, reply, took, row.reply, row.min, row.max)
			}
		})
	}
}

// TestBlockingCommandEndsOnError: a command that the masters refuse does not wait.
func TestBlockingCommandEndsOnError(t *testing.T) {
	for _, outcome := range []redlock.Outcome{{Err: "WRONGTYPE no list"}, replied("-ERR timeout is negative\r\n")} {
		if reply, tries := blocked(t.Context(), "BLPOP k 10", func() redlock.Outcome { return outcome }); !strings.HasPrefix(reply, "-") || tries != 1 {
			t.Errorf("%q after %d tries", reply, tries)
		}
	}
}

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
		"XREAD COUNT STREAMS s $":                                false,
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
