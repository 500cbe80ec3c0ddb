package lease

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock"
)

const (
	longEnough = "0123456789abcdef" // redlock.ShortValue bytes
	shared     = "0123456789abcde"  // a byte less: many clients may share it
)

var (
	noQuorum = redlock.Outcome{Verdict: redlock.NoQuorum}
	won      = redlock.Outcome{Verdict: redlock.Won}
)

// now returns an outcome of a command that began now.
func now(o redlock.Outcome) redlock.Outcome {
	o.Since = time.Now()
	return o
}

// ran returns the outcome of a run with one effect, which began now.
func ran(e redlock.Effect) redlock.Outcome {
	e.Key = []byte("k")
	return now(redlock.Outcome{Verdict: redlock.Won, Effects: []redlock.Effect{e}})
}

// Only the holder gives a lock up: by a release without a quorum on its own connection, or by naming a
// value that is nobody else's on any connection. Else the lock is renewed as before.
func TestWhoGivesALockUp(t *testing.T) {
	attempted := func(value string) redlock.Outcome {
		o := noQuorum
		o.Attempted = []redlock.Effect{{Key: []byte("k"), Value: []byte(value)}}
		return o
	}
	words := func(all ...string) (args [][]byte) {
		for _, word := range all {
			args = append(args, []byte(word))
		}
		return args
	}
	deletion := func(r redlock.RunRequest, value string, own bool) func(b *bench, others *Holder) {
		return func(b *bench, others *Holder) {
			by := others
			if own {
				by = b.holder
			}
			r.Keys = words("k", "free")
			b.Deletions(&r, by)([]byte("k"), []byte(value))
		}
	}
	for _, row := range []struct {
		name, value string
		try         func(b *bench, others *Holder)
		givenUp     bool
	}{
		{"a release by its connection", token, func(b *bench, _ *Holder) { b.Ended(now(noQuorum), 0, b.holder, []byte("k")) }, true},
		{"a release by another", token, func(b *bench, others *Holder) { b.Ended(now(noQuorum), 0, others, []byte("k")) }, false},

		{"a script with its value, by another", longEnough, func(b *bench, others *Holder) { b.Ran(now(attempted(longEnough)), 0, others) }, true},
		{"a script with a shared value, by another", shared, func(b *bench, others *Holder) { b.Ran(now(attempted(shared)), 0, others) }, false},
		{"a script with a shared value, by its connection", shared, func(b *bench, _ *Holder) { b.Ran(now(attempted(shared)), 0, b.holder) }, true},
		{"a script with another value, by its connection", token, func(b *bench, _ *Holder) { b.Ran(now(attempted(another)), 0, b.holder) }, false},

		{"a deletion by its connection", token, deletion(redlock.RunRequest{Args: words("DEL", "k")}, token, true), true},
		{"a deletion of another value, by its connection", token, deletion(redlock.RunRequest{Args: words("DEL", "k")}, another, true), false},
		{"a deletion by another that names its value", longEnough, deletion(redlock.RunRequest{Args: words("EVAL", "…", longEnough)}, longEnough, false), true},
		{"a transaction by another that names its value", longEnough, deletion(redlock.RunRequest{Transaction: [][][]byte{words("DEL", longEnough)}}, longEnough, false), true},
		{"a deletion by another that names no value", token, deletion(redlock.RunRequest{Args: words("DEL", "k")}, token, false), false},
		{"a deletion by another that names a shared value", shared, deletion(redlock.RunRequest{Args: words("EVAL", "…", shared)}, shared, false), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
				b.take("k", row.value, 3*second)
				row.try(b, b.NewHolder(func() {}))
				pass(10 * second)
				if held := b.masters.holds("k", row.value); held == row.givenUp {
					t.Errorf("after 10 s its lock of 3 s is held: %v", held)
				}
				b.wantLost(t, 0)
			})
		})
	}
}

// What nobody calls a lease is no one's to give up.
func TestWhereThereAreNoLeasesNobodyGivesOneUp(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		if b.Deletions(&redlock.RunRequest{}, b.holder) != nil {
			t.Error("a deletion is looked into")
		}
		b.take("other", token, 3*second)
		b.Ended(now(won), 0, b.holder, []byte("k"))
		b.Prolonged(now(won), 0, []byte("k"), second)
		b.Ran(ran(redlock.Effect{Change: redlock.KeyCreated, Holder: []byte(token)}), 0, nil)
		if n := b.Counts().Held; n != 1 {
			t.Errorf("%d leases", n)
		}
	})
}

// A string or a hash that a run created is the lock of its connection.
func TestALockThatARunTakesIsRenewed(t *testing.T) {
	for _, effect := range []redlock.Effect{{Value: []byte(token)}, {Holder: []byte(token)}} {
		onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
			effect.Change, effect.TTL = redlock.KeyCreated, 3*second
			b.masters.put("k", token, 3*second)
			b.Ran(ran(effect), 0, b.holder)
			pass(10 * second)
			b.wantHeld(t, "k", true)
			if !b.holder.Holds() {
				t.Errorf("no lease: %+v", effect)
			}
		})
	}
}

// A run that prolongs a lock, or takes it once more, leaves its lease.
func TestALockThatARunProlongsIsStillRenewed(t *testing.T) {
	for _, change := range []redlock.Change{redlock.KeyProlonged, redlock.KeyReentered} {
		onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
			b.take("k", token, 3*second)
			b.Ran(ran(redlock.Effect{Change: change, TTL: 3 * second}), 0, b.holder)
			pass(10 * second)
			b.wantHeld(t, "k", true)
			b.masters.put("k", "", 0)
			pass(10 * second)
			b.wantLost(t, 0)
		})
	}
}

// A string that a run creates is a lock of its client's connection. Without a connection it has no lease.
func TestAStringThatARunCreatesIsRenewed(t *testing.T) {
	for _, leased := range []bool{true, false} {
		onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
			holder := b.holder
			if !leased {
				holder = nil
			}
			b.masters.put("k", token, 3*second)
			b.Ran(ran(redlock.Effect{Change: redlock.KeyCreated, Value: []byte(token), TTL: 3 * second}), 0, holder)
			pass(10 * second)
			b.wantHeld(t, "k", leased)
			b.wantLost(t, 0)
		})
	}
}

// A client that replaces its own string has no lock any more that it could lose.
func TestAStringThatARunReplacesHasNoLease(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		b.take("k", token, 3*second)
		b.Ran(ran(redlock.Effect{Change: redlock.KeyReplaced, Value: []byte(another), TTL: 3 * second}), 0, b.holder)
		if b.Any() {
			t.Error("it has one")
		}
	})
}

// A command that changed nothing leaves the lease: one that lost, and one that met an error.
func TestACommandThatChangedNothingEndsNoLease(t *testing.T) {
	for name, o := range map[string]redlock.Outcome{
		"lost":     {Verdict: redlock.Lost},
		"an error": {Verdict: redlock.Won, Err: "WRONGTYPE"},
	} {
		onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
			b.take("k", token, 3*second)
			b.Ended(now(o), 0, b.holder, []byte("k"))
			b.Prolonged(now(o), 0, []byte("k"), time.Hour)
			pass(10 * second)
			b.wantHeld(t, "k", true)
			if n := b.Counts().Renewals["renewed"]; n < 9 {
				t.Errorf("%s: %d renewals", name, n)
			}
		})
	}
}

// A hash's holder may have as short a name as a string's.
func TestTheShortestNameOfAHoldersField(t *testing.T) {
	for field, leases := range map[string]bool{longEnough: true, shared: false} {
		onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
			b.Ran(ran(redlock.Effect{Change: redlock.KeyCreated, Holder: []byte(field), TTL: 3 * second}), 0, b.holder)
			if b.Any() != leases {
				t.Errorf("%s has a lease: %v", field, b.Any())
			}
		})
	}
}

// A script or a transaction that releases a lock is not the one that operators are told of, whose lock
// is no string.
func TestAReleaseByAScriptIsNoLockWithoutALease(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		b.take("k", token, 3*second)
		b.Ran(ran(redlock.Effect{Change: redlock.KeyDeleted}), 0, b.holder)
		if c := b.Counts(); c.Held != 0 || c.Refused["not_a_string"] != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// Without TTL a lock ends by its release alone, which then reaches copies that never end.
func TestAReleaseOfALockWithoutTTLReachesAllCopies(t *testing.T) {
	onBench(t, Rule{Release: true}, func(t *testing.T, b *bench) {
		b.take("k", token, time.Hour)
		b.holder.Took(0, []byte("k"), []byte(token), 0, time.Now())
		pass(5 * second)
		b.holder.Close(true)
		pass(time.Millisecond)
		b.masters.mu.Lock()
		defer b.masters.mu.Unlock()
		if len(b.masters.asked) != 1 || !b.masters.until.IsZero() {
			t.Errorf("asked %q, until %v", b.masters.asked, b.masters.until)
		}
	})
}

// A turn with nothing to do ends, and the next one comes later.
func TestATurnWithNothingToDoEnds(t *testing.T) {
	onBench(t, Rule{Release: true}, func(t *testing.T, b *bench) {
		b.holder.Took(0, []byte("k"), []byte(token), 0, time.Now())
		pass(3 * awaitTTL)
		if !b.holder.Holds() || len(b.masters.asked) > 0 {
			t.Errorf("it holds the lock: %v; asked %q", b.holder.Holds(), b.masters.asked)
		}
	})
}

// A connection holds leases as long as its locks last.
func TestAConnectionHoldsWhatItTook(t *testing.T) {
	onBench(t, Rule{Renew: 2 * second}, func(t *testing.T, b *bench) {
		if b.holder.Holds() {
			t.Error("before it takes a lock")
		}
		b.take("k", token, 3*second)
		if !b.holder.Holds() {
			t.Error("not after it has taken one")
		}
		pass(10 * second)
		if b.holder.Holds() {
			t.Error("after the lock has ended")
		}
	})
}

// Operators are told of a TTL that is too short to be renewed if there is one, and if it should be.
func TestOnlyATTLThatShouldBeRenewedIsTooShort(t *testing.T) {
	for _, row := range []struct {
		rule Rule
		ttl  time.Duration
		want int64
	}{
		{Rule{Renew: time.Minute}, 10 * time.Millisecond, 1},
		{Rule{Renew: time.Minute}, 0, 0},
		{Rule{Release: true}, 10 * time.Millisecond, 0},
	} {
		onBench(t, row.rule, func(t *testing.T, b *bench) {
			b.holder.Took(0, []byte("k"), []byte(token), row.ttl, time.Now())
			if got := b.Counts().Refused["ttl_too_short"]; got != row.want {
				t.Errorf("%+v with %v: told %d times", row.rule, row.ttl, got)
			}
		})
	}
}

// A question that has its answer has not panicked.
func TestAnswersAreNotLoggedAsPanics(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		b.take("k", token, 3*second)
		pass(5 * second)
		if strings.Contains(b.log.String(), "panic") {
			t.Error(b.log.String())
		}
	})
}

// A value of just that many bytes is nobody else's, so its lock ends with the connection.
func TestTheShortestValueThatIsReleased(t *testing.T) {
	for value, held := range map[string]bool{longEnough: false, shared: true} {
		onBench(t, Rule{Release: true}, func(t *testing.T, b *bench) {
			b.take("k", value, time.Hour)
			b.holder.Close(true)
			pass(time.Millisecond)
			if b.masters.holds("k", value) != held {
				t.Errorf("%s is held: %v", value, !held)
			}
		})
	}
}

// leaseOf returns the lease of a key.
func (b *bench) leaseOf(key string) *lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leases[place{0, key}]
}

// A renewal is pending while the masters are asked, and no longer. A lock that was made permanent just
// when its renewal began is not renewed.
func TestARenewalIsPendingWhileTheMastersAreAsked(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		pending := func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.leases[place{0, "k"}].term.pending
		}
		b.masters.takes = 10 * time.Millisecond
		b.take("k", token, 3*second)
		pass(1005 * time.Millisecond)
		if !pending() {
			t.Error("it is not while they are asked")
		}
		pass(10 * time.Millisecond)
		if pending() {
			t.Error("it is after they have answered")
		}
		b.Prolonged(now(won), 0, []byte("k"), 0)
		b.asking <- struct{}{}
		b.renew(b.leaseOf("k"))
		if pending() || len(b.masters.asked) != 1 {
			t.Errorf("it is for a permanent lock; asked %q", b.masters.asked)
		}
	})
}

// The Keeper forgets a lease that has ended, and no other: the next holder may have taken the lock
// before the release of the one before has its turn.
func TestALeaseThatEndsIsForgotten(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute, Release: true}, func(t *testing.T, b *bench) {
		for range maxAsking {
			b.asking <- struct{}{}
		}
		b.take("k", token, 3*second)
		b.holder.Close(true)
		next := b.NewHolder(func() {})
		b.masters.put("k", another, 3*second)
		next.Took(0, []byte("k"), []byte(another), 3*second, time.Now())
		for range maxAsking {
			<-b.asking
		}
		pass(second)
		if l := b.leaseOf("k"); l == nil || l.value != another {
			t.Fatal("the next holder's lease was forgotten")
		}
		b.Ended(now(won), 0, next, []byte("k"))
		if b.leaseOf("k") != nil {
			t.Error("a lease that has ended is remembered")
		}
	})
}

// A process has so many leases and no more.
func TestLimitOfAProcess(t *testing.T) {
	onBench(t, Rule{Renew: time.Minute}, func(t *testing.T, b *bench) {
		now := time.Now()
		for b.Counts().Held < maxLeases {
			h := b.NewHolder(func() {})
			for i := range maxOfHolder {
				h.Took(int(b.Counts().Held), []byte{byte(i), byte(i >> 8)}, []byte(token), time.Hour, now)
			}
		}
		b.NewHolder(func() {}).Took(0, []byte("another"), []byte(token), time.Hour, now)
		if c := b.Counts(); c.Held != maxLeases || c.Refused["too_many"] != 1 {
			t.Errorf("%d leases, %d refused", c.Held, c.Refused["too_many"])
		}
	})
}
