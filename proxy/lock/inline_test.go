package lock

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// A fakeLock is a lock on fake masters. Its rule has a wait of 2 s.
type fakeLock struct {
	fakeLockerPlane
	draining chan struct{}
	changed  func(key []byte)

	mu     sync.Mutex
	holder string // "": the lock is free; "?": nobody can know
}

func newFakeLock() *fakeLock {
	x := &fakeLock{draining: make(chan struct{})}
	x.fakeLockerPlane = newFakeLockerPlane(x.answer,
		route.Rule{Match: "now", DB: route.AnyDB}, route.Rule{Match: "*", DB: route.AnyDB, Wait: 2 * time.Second})
	x.Draining = x.draining
	x.lines = newLines(Changes{Available: func() bool { return true }, Subscribe: func(changed func(key []byte)) Tracker {
		x.changed = changed
		return allKeys{}
	}})
	return x
}

// change announces that a key has changed on the masters.
func (x *fakeLock) change(key string) { x.changed([]byte(key)) }

// allKeys is a Tracker that tracks every key.
type allKeys struct{}

func (allKeys) Track(context.Context, ...string) {}
func (allKeys) Untrack(...string)                {}

func (x *fakeLock) answer(request any) redlock.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.holder == "?" {
		return fakeLockerNoQuorum
	}
	switch r := request.(type) {
	case redlock.AcquireRequest:
		if x.holder != "" {
			return fakeLockerValue(redlock.Lost, x.holder)
		}
		x.holder = string(r.Value)
	case fakeLockerExists:
		if x.holder == "" {
			return fakeLockerLost
		}
	case redlock.RunRequest:
		if r.Transaction == nil {
			return x.script(r)
		}
	case redlock.ReleaseRequest:
		if x.holder == "" {
			return fakeLockerLost
		}
		x.holder = ""
	}
	return fakeLockerWon
}

// script runs a script on the one lock. Its text is what it does. Its first argument is the
// client, which may take its own lock again.
func (x *fakeLock) script(r redlock.RunRequest) redlock.Outcome {
	o, client := fakeLockerReply(":0\r\n"), string(r.Args[4])
	effect := redlock.Effect{Key: r.Keys[0]}
	switch text := string(r.Args[1]); {
	case text == "take" && x.holder == "":
		x.holder, effect.Change = client, redlock.KeyCreated
	case text == "take" && x.holder == client:
		effect.Change = redlock.KeyProlonged
	case text == "release" && x.holder == client:
		x.holder, effect.Change = "", redlock.KeyDeleted
	case text == "refuse":
		return o // although the lock is free
	case x.holder != "" && r.Effects:
		o.Kept = r.Keys[:1]
		return o
	default:
		return o
	}
	o.Reply = []byte(":1\r\n")
	if r.Effects {
		o.Effects = []redlock.Effect{effect}
	}
	return o
}

// heldBy makes another client the holder, without an announcement.
func (x *fakeLock) heldBy(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.holder = name
}

func (x *fakeLock) send(ctx context.Context, line string) *proxytest.Pending {
	call := x.call(line)
	return proxytest.Send(func() string { return string(x.Do(ctx, nil, call)) })
}

func (x *fakeLock) wantNotes(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	x.meter.mu.Lock()
	defer x.meter.mu.Unlock()
	slices.Sort(x.meter.notes)
	if !slices.Equal(x.meter.notes, want) {
		t.Errorf("counted %q, want %q", x.meter.notes, want)
	}
	x.meter.notes = nil
}

const nothing, one, none = "$-1\r\n", ":1\r\n", ":0\r\n"

// A refused acquire waits until a release through this proxy, and is counted once.
func TestARefusedAcquireWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.heldBy("x")
		a, b := x.send(t.Context(), "SET k a NX PX 30000"), x.send(t.Context(), "SETNX k b")
		a.WantWaiting(t)
		time.Sleep(300 * time.Millisecond)
		x.send(t.Context(), "DEL k").Want(t, one, 0)
		a.Want(t, string(wire.OK), 300*time.Millisecond)
		b.WantWaiting(t)
		x.send(t.Context(), "GETDEL k")
		b.Want(t, one, 300*time.Millisecond)
		x.wantNotes(t, "granted after 300ms", "granted after 300ms", "waits", "waits", "without TTL")
		if got := strings.Join(x.meter.commands, ", "); got != "release won, acquire won, release won, acquire won" {
			t.Errorf("counted %q", got)
		}
	})
}

// A release through another proxy is known by the masters' notice.
func TestARefusedAcquireIsWokenByANotice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.heldBy("x")
		a := x.send(t.Context(), "SET k a NX PX 30000")
		time.Sleep(300 * time.Millisecond)
		x.heldBy("")
		x.change("k")
		a.Want(t, string(wire.OK), 300*time.Millisecond)
	})
}

// The time is over: an acquire gets the reply of one Redis. One behind the head gets it
// from a look at the lock.
func TestTheOrdinaryReplyComesWhenTheTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.heldBy("x")
		a, b := x.send(t.Context(), "SET k a NX PX 30000"), x.send(t.Context(), "SETNX k b")
		c := x.send(t.Context(), "SET k c NX GET PX 30000")
		time.Sleep(3 * time.Second)
		a.Want(t, nothing, 2*time.Second)
		b.Want(t, none, 2*time.Second)
		c.Want(t, "$1\r\nx\r\n", 2*time.Second)
		x.wantNotes(t, "refused after 2s", "refused after 2s", "refused after 2s", "waits", "waits", "waits")
	})
}

// A lost quorum is never told as a refusal.
func TestALostQuorumEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.heldBy("x")
		a, b := x.send(t.Context(), "SET k a NX PX 30000"), x.send(t.Context(), "SETNX k b")
		x.heldBy("?")
		x.change("k")
		const lost = "-QUORUMLOST 2 of 5 lock masters can vote, 3 needed (deploy/INCIDENTS.md#quorumlost)\r\n"
		a.Want(t, lost, 0)
		b.Want(t, lost, 0)
		x.wantNotes(t, "error after 0s", "error after 0s", "waits", "waits")
	})
}

// A look that finds the lock free is a refusal all the same: it belongs to the head. One that finds no quorum is none.
func TestAnAcquireOutOfItsTurnTakesNothing(t *testing.T) {
	for now, want := range map[string]string{"x": nothing, "": nothing, "?": "-QUORUMLOST 2 of 5 lock masters can vote, 3 needed (deploy/INCIDENTS.md#quorumlost)\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			x := newFakeLock()
			x.heldBy("x")
			x.send(t.Context(), "SET k a NX PX 30000")
			time.Sleep(time.Second / 2)
			b := x.send(t.Context(), "SET k b NX PX 30000")
			x.heldBy(now)
			close(x.draining)
			b.Want(t, want, 0)
			x.heldBy("")
			x.send(t.Context(), "SET k c NX PX 30000").Want(t, string(wire.OK), 0)
		})
	}
}

// Without a wait in its rule, or with a TTL that is too short for any lock, an acquire is
// refused at once. So is one that is part of a transaction.
func TestAcquiresThatDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.heldBy("x")
		x.send(t.Context(), "SET now a NX PX 30000").Want(t, nothing, 0)
		x.send(t.Context(), "SETNX now a").Want(t, none, 0)
		x.send(t.Context(), "SET k a NX PX 1").Want(t, nothing, 0)
		set := x.call("SET k a NX PX 30000")
		if reply := x.Exec(t.Context(), nil, Transaction{Commands: []Command{set}}); time.Now().Second() != 0 {
			t.Errorf("a transaction waited: %q", reply)
		}
		x.wantNotes(t)
	})
}

// A client that leaves gives up its place.
func TestAClientLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.heldBy("x")
		ctx, leave := context.WithCancel(t.Context())
		a := x.send(ctx, "SET k a NX PX 30000")
		b := x.send(t.Context(), "SET k b NX PX 30000")
		leave()
		x.send(t.Context(), "DEL k")
		a.Want(t, "-"+redlock.Outcome{Verdict: redlock.NoQuorum, Abandoned: true}.NoQuorumError()+" (deploy/INCIDENTS.md#quorumlost)\r\n", 0)
		b.Want(t, string(wire.OK), 0)
		x.wantNotes(t, "gone after 0s", "granted after 0s", "waits", "waits")
	})
}

// A client may leave when its lock has just been granted. Its lease must know of that, so
// that the lock can end with the connection.
func TestALockGrantedWhileItsClientLeavesHasALease(t *testing.T) {
	for _, line := range []string{"SETNX k a-token-of-its-own", "EVAL take 1 k a-token-of-its-own"} {
		synctest.Test(t, func(t *testing.T) {
			x := newFakeLock()
			leasing, holder := newLeasingPlane(t, nil)
			x.Leases = leasing.Leases
			x.Scripts.Acquired([]byte("take"))
			ctx, leave := context.WithCancel(t.Context())
			x.locker.answer = func(request any) redlock.Outcome {
				defer leave()
				if _, isRun := request.(redlock.RunRequest); isRun {
					return leaseEffect(redlock.KeyCreated, "a-token-of-its-own", 0)
				}
				return fakeLockerWon
			}
			call := x.call(line)
			call.Leases = holder
			if reply := string(x.Do(ctx, nil, call)); reply != one || leasing.Leases.Counts().Held != 1 {
				t.Errorf("%s: %q, %d leases", line, reply, leasing.Leases.Counts().Held)
			}
			leasing.Leases.Close(t.Context())
		})
	}
}

// A command that may have freed a lock passes it on, also a transaction.
func TestWhatHandsOver(t *testing.T) {
	for _, line := range []string{"DEL j k", "UNLINK k", "GETDEL k", "PEXPIRE k 0", "EVAL s 1 k", "SET k v XX PXAT 1", "MULTI"} {
		synctest.Test(t, func(t *testing.T) {
			x := newFakeLock()
			x.heldBy("x")
			a := x.send(t.Context(), "SET k a NX PX 30000")
			x.heldBy("")
			if line == "MULTI" {
				x.Exec(t.Context(), nil, Transaction{Commands: []Command{x.call("HDEL k a")}})
			} else {
				x.heldBy("y")
				x.locker.answer = func(request any) redlock.Outcome {
					if _, acquires := request.(redlock.AcquireRequest); !acquires {
						x.heldBy("")
						return fakeLockerWon
					}
					return x.answer(request)
				}
				x.send(t.Context(), line)
			}
			if reply, _ := a.Now(); reply != string(wire.OK) {
				t.Errorf("%s: %q", line, reply)
			}
		})
	}
}

// A script that took a lock once waits when it is refused. Its first refusal may come
// before that is known.
func TestAScriptThatAcquiresWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.heldBy("x")
		x.send(t.Context(), "EVAL take 1 k a").Want(t, none, 0) // nobody knows what it does
		x.heldBy("")
		x.send(t.Context(), "EVAL take 1 k a").Want(t, one, 0)
		b, c := x.send(t.Context(), "EVAL take 1 k b"), x.send(t.Context(), "EVAL take 1 k c")
		b.WantWaiting(t)
		x.send(t.Context(), "EVAL take 1 k a").Want(t, one, 0) // the holder again
		time.Sleep(300 * time.Millisecond)
		x.send(t.Context(), "EVAL release 1 k b").Want(t, none, 0)
		b.WantWaiting(t)
		x.send(t.Context(), "EVAL release 1 k a").Want(t, one, 0)
		b.Want(t, one, 300*time.Millisecond)
		c.WantWaiting(t)
		time.Sleep(2 * time.Second)
		c.Want(t, none, 2*time.Second)
		x.send(t.Context(), "EVAL take 1 now c").Want(t, none, 0) // a rule without a wait
		x.wantNotes(t, "granted after 300ms", "refused after 2s", "waits", "waits")
	})
}

// A script that changes nothing although the lock is free is answered at once. Nobody
// behind it is held up.
func TestAScriptThatFindsItsLockFreeDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		for _, text := range []string{"refuse", "take"} {
			x.Scripts.Register([]byte(text))
			x.Scripts.Acquired([]byte(text))
		}
		x.send(t.Context(), "EVAL refuse 1 k a").Want(t, none, 0)
		x.send(t.Context(), "EVAL release 1 k a").Want(t, none, 0)
		if x.Scripts.Acquires([]byte("release")) {
			t.Error("a script that took nothing counts as one that acquires")
		}
		x.heldBy("x")
		b, c := x.send(t.Context(), "EVAL take 1 k b"), x.send(t.Context(), "SET k c NX PX 30000")
		x.heldBy("?")
		x.change("k")
		const lost = "-QUORUMLOST 2 of 5 lock masters can vote, 3 needed (deploy/INCIDENTS.md#quorumlost)\r\n"
		b.Want(t, lost, 0)
		c.Want(t, lost, 0)
	})
}

// An argument of a script is no lock, even if a rule matches it.
func TestAScriptWaitsForItsKeysOnly(t *testing.T) {
	x := newFakeLock()
	call := x.call("EVAL take 2 now k token")
	call.Route.Keys, call.Route.Lock = append(call.Route.Keys, 5), append(call.Route.Lock, true)
	rule, locks := x.scriptWaitsFor(call)
	if rule == nil || rule.Match != "*" || len(locks) != 1 || string(locks[0]) != "k" {
		t.Errorf("%+v, %q", rule, locks)
	}
	if rule, _ := x.scriptWaitsFor(x.call("EVAL take 0 k")); rule != nil {
		t.Errorf("without keys: %+v", rule)
	}
	x.routes.Store(&route.Router{Rules: route.Rules{{Match: "a", DB: route.AnyDB, Wait: time.Second}, {Match: "*", DB: route.AnyDB, Wait: time.Minute}}})
	if rule, locks := x.scriptWaitsFor(x.call("EVAL take 2 a b")); rule == nil || rule.Match != "a" || len(locks) != 2 {
		t.Errorf("it waits as %+v says, for %q", rule, locks)
	}
	x.routes.Store(&route.Router{Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB, Wait: time.Second}}})
	if rule, locks := x.scriptWaitsFor(x.call("EVAL take 2 lock-signal:a lock:a")); rule == nil || len(locks) != 1 || string(locks[0]) != "lock:a" {
		t.Errorf("with a companion it waits as %+v says, for %q", rule, locks)
	}
}

// The limits of a wait are those of the rule that is active when the acquire comes.
func TestAReloadAppliesToTheNextAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFakeLock()
		x.heldBy("x")
		a := x.send(t.Context(), "SET k a NX PX 30000")
		x.routes.Store(&route.Router{Rules: route.Rules{{Match: "*", DB: route.AnyDB}}})
		x.send(t.Context(), "SET k b NX PX 30000").Want(t, nothing, 0)
		time.Sleep(3 * time.Second)
		a.Want(t, nothing, 2*time.Second)
	})
}
