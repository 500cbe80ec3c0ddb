package lock

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// What an acquire came to for those who wait: only a refusal by a quorum lets it wait on.
func TestResultOfAnAcquire(t *testing.T) {
	for name, row := range map[string]struct {
		answer answer
		want   tryResult
	}{
		"won":                  {answer{kind: redlock.KindAcquire, outcome: fakeLockerWon}, tryGranted},
		"refused":              {answer{kind: redlock.KindAcquire, outcome: fakeLockerLost}, tryRefused},
		"of another type":      {answer{kind: redlock.KindAcquire, outcome: redlock.Outcome{Verdict: redlock.Lost, Err: "WRONGTYPE x"}}, tryUndecided},
		"without a quorum":     {answer{kind: redlock.KindAcquire, outcome: fakeLockerNoQuorum}, tryUndecided},
		"refused by the proxy": {rejection(redlock.KindAcquire, errorHolderVanished), tryUndecided},
	} {
		if got := row.answer.result(); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// A script that creates one of its locks acquires. One that changes nothing although a lock exists is refused, and so is
// one whose votes were split.
func TestResultOfAScript(t *testing.T) {
	did := func(verdict redlock.Verdict, key string, change redlock.Change) redlock.Outcome {
		return redlock.Outcome{Verdict: verdict, Effects: []redlock.Effect{{Key: []byte(key), Change: change}}}
	}
	kept := func(key string) redlock.Outcome {
		return redlock.Outcome{Verdict: redlock.Won, Kept: [][]byte{[]byte(key)}}
	}
	wakes := did(redlock.Won, "signal", redlock.KeyCreated)
	wakes.Kept = [][]byte{[]byte("k")}
	for name, row := range map[string]struct {
		outcome redlock.Outcome
		want    tryResult
	}{
		"it creates the lock":               {did(redlock.Won, "k", redlock.KeyCreated), tryGranted},
		"it prolongs the lock":              {did(redlock.Won, "k", redlock.KeyProlonged), tryUndecided},
		"it deletes the lock":               {did(redlock.Won, "k", redlock.KeyDeleted), tryUndecided},
		"it wakes those that wait":          {wakes, tryUndecided},
		"it leaves the lock as it is":       {kept("k"), tryRefused},
		"it leaves another key as it is":    {kept("signal"), tryUndecided},
		"it finds nothing and does nothing": {redlock.Outcome{Verdict: redlock.Won}, tryUndecided},
		"its votes were split":              {redlock.Outcome{Verdict: redlock.Lost}, tryRefused},
		"without a quorum":                  {redlock.Outcome{Verdict: redlock.NoQuorum}, tryUndecided},
	} {
		if got := (answer{kind: redlock.KindRun, outcome: row.outcome}).resultOn([][]byte{[]byte("k"), []byte("j")}); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// The log of slow commands shows what the masters took long for, and not how long an acquire waited for its turn.
func TestAnAcquireThatWaitedIsNotSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.Journal, x.IsSlow = events.New(x.Log), func(took time.Duration) bool { return took >= 0 }
		x.heldBy("x")
		x.send(t.Context(), "SET k a NX PX 30000")
		time.Sleep(3 * time.Second)
		if slow := x.Journal.Slow(10); len(slow) > 0 {
			t.Errorf("it is %+v", slow)
		}
		x.send(t.Context(), "SET now a NX PX 30000")
		if slow := x.Journal.Slow(10); len(slow) != 1 {
			t.Errorf("without a wait: %+v", slow)
		}
	})
}

// A client that is refused because its lock's key has moved meanwhile has no lock: there is no lease, nobody is told of a
// grant, and the refusal is counted.
func TestALockOnAKeyThatMovedHasNoLease(t *testing.T) {
	for _, line := range []string{"SET k a-token-of-its-own NX PX 3600000", "EVAL take 1 k a-token-of-its-own"} {
		p, holder := newLeasingPlane(t, nil)
		p.Journal, p.IsSlow = events.New(p.Log), func(time.Duration) bool { return false }
		p.routes.Store(&route.Router{Rules: route.Rules{{Match: "*", DB: route.AnyDB}}})
		p.locker.answer = func(request any) redlock.Outcome {
			now := time.Now()
			p.routes.Store(p.routes.Load().WithRules(nil, now, time.Hour, time.Minute).LeavingFor(now.Add(time.Hour)))
			if _, isRun := request.(redlock.RunRequest); isRun {
				o := leaseEffect(redlock.KeyCreated, "a-token-of-its-own", time.Hour)
				o.Lives = time.Hour
				return o
			}
			return fakeLockerWon
		}
		call := p.call(line)
		call.Leases = holder
		reply := string(p.Do(t.Context(), nil, call))
		if !strings.HasPrefix(reply, "-TRYAGAIN ") || p.Leases.Counts().Held != 0 || len(p.Journal.Verdicts(0, []byte("k"))) > 0 {
			t.Errorf("%s: %q, %d leases, %+v", line, reply, p.Leases.Counts().Held, p.Journal.Verdicts(0, []byte("k")))
		}
		if notes := strings.Join(p.meter.notes, " "); notes != "refused TRYAGAIN" {
			t.Errorf("%s: noted %q", line, notes)
		}
	}
}

// Symfony's probe lives for a millisecond, so masters differ about it. No vote depends on it.
func TestTheSupportProbeIsNoKeyOfAVote(t *testing.T) {
	for line, want := range map[string]string{
		"EVAL s 1 " + route.SupportProbe:            "",
		"EVAL s 2 k " + route.SupportProbe:          "k",
		"EVAL s 2 " + route.SupportProbe + " k":     "k",
		"EVAL s 3 j " + route.SupportProbe + " k x": "j k",
	} {
		var keys []string
		for _, key := range fakeLockerCall(line).Keys() {
			keys = append(keys, string(key))
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// The label is that of the first lock key's rule. A companion has one of its own, and a command without lock keys none.
func TestCommandsAreCountedByRule(t *testing.T) {
	p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerReply("+OK\r\n")), route.Rule{Match: "lock:*", DB: route.AnyDB})
	for _, line := range []string{"SET lock:a v", "SET lock-signal:a v", "SCRIPT FLUSH"} {
		p.ask(t, line)
	}
	if got := strings.Join(p.meter.rules, ";"); got != "lock:*;companion;" {
		t.Errorf("counted for %q", got)
	}
}

// An answer of a master that was too long, and values of MGET that are too long together, count as a limit that was
// reached. MGET then asks for no more of them.
func TestLongRepliesAreCounted(t *testing.T) {
	for line, row := range map[string]struct {
		outcome redlock.Outcome
		want    string
	}{
		"HGETALL k":                             {redlock.Outcome{Verdict: redlock.NoQuorum, TooLong: 1}, "limit lock_reply"},
		"HLEN k":                                {redlock.Outcome{Verdict: redlock.NoQuorum}, ""},
		"MGET" + strings.Repeat(" k", 3) + " j": {fakeLockerValue(redlock.Won, "12345678"), "limit lock_reply"},
		"MGET k":                                {fakeLockerValue(redlock.Won, "12345678"), ""},
	} {
		p := newFakeLockerPlane(fakeLockerAnswers(row.outcome))
		p.MaxReply = func() int64 { return 10 }
		p.ask(t, line)
		if got := strings.Join(p.meter.notes, " "); got != row.want {
			t.Errorf("%s: noted %q", line, got)
		}
	}
	p := newFakeLockerPlane(fakeLockerAnswers(fakeLockerValue(redlock.Won, "12345678")))
	p.MaxReply = func() int64 { return 10 }
	line := "MGET"
	for i := range 10 * concurrentKeys {
		line += fmt.Sprint(" k", i)
	}
	if reply := p.ask(t, line); reply != string(errorLongReply) || len(p.locker.asked) > 2*concurrentKeys {
		t.Errorf("%q after %d questions", reply, len(p.locker.asked))
	}
}

// A scan shows nothing of what no quorum answered, or of an answer that is no list.
func TestAScanShowsOnlyWhatAQuorumHas(t *testing.T) {
	for reply, outcome := range map[string]redlock.Outcome{
		"*0\r\n": {Verdict: redlock.Lost, Reply: []byte("*0\r\n")},
		"-QUORUMLOST 2 of 5 lock masters can vote, 3 needed (deploy/INCIDENTS.md#quorumlost)\r\n": {Verdict: redlock.Won, Reply: []byte(":1\r\n"), Voting: 2, Answered: 2, Asked: 5, Needed: 3},
	} {
		if got := newFakeLockerPlane(fakeLockerAnswers(outcome)).ask(t, "HSCAN k 0"); got != reply {
			t.Errorf("%q, want %q", got, reply)
		}
	}
}

// In a command that is rejected, what stands in the place of a key need not be one.
func TestTheLogHasNoKeyOfARejectedCommand(t *testing.T) {
	p := newFakeLockerPlane(nil)
	p.ask(t, "EVAL s 5 secret")
	if text := p.log.String(); strings.Contains(text, "secret") || !strings.Contains(text, "command=eval") {
		t.Errorf("the log says %s", text)
	}
}

// A TTL that a client sets is the lease's from then on.
func TestALeaseFollowsTheTTLOfItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, holder := newLeasingPlane(t, nil)
		defer p.Leases.Close(t.Context())
		holder.Took(0, []byte("k"), []byte("v"), time.Hour, time.Now())
		p.ask(t, "PEXPIRE k 60000")
		asked := len(p.locker.requests())
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if len(p.locker.requests()) == asked {
			t.Error("the lock is not renewed by its new TTL")
		}
		holder.Close(false)
	})
}
