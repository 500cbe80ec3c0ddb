package lock

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// push adds elements to a list. Nobody hears of it yet.
func (m *masters) push(key string, elements int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lists[key] += elements
}

// pop starts a client that takes an element from any of the keys. It returns when the client waits
// or has its end.
func (m *masters) pop(ctx context.Context, name string, r waitRequest, keys ...string) {
	r.AtOnce = true
	if r.Kind == forLock {
		r.Kind = forElements
	}
	if r.Wait == 0 {
		r.Wait = time.Minute
	}
	for _, key := range keys {
		r.Keys = append(r.Keys, []byte(key))
	}
	began := time.Now()
	go func() {
		last := tryUndecided
		tried := m.lines.serve(ctx, r, func() tryResult {
			last = m.tryPop(name, keys)
			return last
		})
		said := [...]string{tryRefused: "nothing", tryAgain: "unknown", tryUndecided: "took"}[last]
		if !tried {
			said = "unheard"
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ends = append(m.ends, fmt.Sprintf("%s %s after %v", name, said, time.Since(began)))
	}()
	synctest.Wait()
}

func (m *masters) tryPop(name string, keys []string) tryResult {
	time.Sleep(m.takes)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries = append(m.tries, name)
	if m.unknown {
		return tryAgain
	}
	for _, key := range keys {
		if m.lists[key] > 0 {
			m.lists[key]--
			return tryUndecided
		}
	}
	return tryRefused
}

// isUnknown says whether nobody can know what there is, and forgets what was done so far.
func (m *masters) isUnknown(unknown bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unknown, m.tries, m.ends = unknown, nil, nil
}

// A change wakes the first of a line only. One that took something may have left something for the
// next.
func TestElementsAreTakenInOrder(t *testing.T) {
	waiting(t, func(m *masters) {
		for _, name := range []string{"a", "b", "c", "d"} {
			m.pop(m.Context(), name, waitRequest{}, "k")
		}
		m.wantTries("a a b c d") // the second when it hears of changes
		m.push("k", 2)
		m.announce("k")
		m.wantTries("a b c")
		m.wantEnds("a took after 0s", "b took after 0s")
		m.push("k", 2)
		m.announce("k")
		m.wantTries("c d")
		m.wantEnds("c took after 0s", "d took after 0s")
	})
}

// A command that takes from any of its keys is called as the head of one of its lines.
func TestTheHeadOfAnyLineIsCalled(t *testing.T) {
	waiting(t, func(m *masters) {
		m.pop(m.Context(), "a", waitRequest{}, "k")
		m.pop(m.Context(), "b", waitRequest{}, "k", "l", "k")
		m.wantTries("a a b b") // b hears of changes of l, and tries again
		m.push("l", 1)
		m.announce("l")
		m.wantTries("b")
		m.wantEnds("b took after 0s")
		m.pop(m.Context(), "c", waitRequest{}, "l", "k")
		m.wantTries("c c")
		m.push("k", 1)
		m.announce("k")
		m.wantTries("a c")
		m.wantEnds("a took after 0s")
		m.push("k", 1)
		m.announce("k")
		m.wantTries("c")
		m.wantEnds("c took after 0s")
	})
}

// The try of one who leads one of its lines is no try of those who lead its others.
func TestATryConcernsOnlyTheLinesThatItLeads(t *testing.T) {
	for range 20 {
		waiting(t, func(m *masters) {
			m.pop(m.Context(), "a", waitRequest{}, "k")
			m.pop(m.Context(), "b", waitRequest{}, "k", "l")
			m.isUnknown(false)
			m.changed(nil)
			synctest.Wait()
			slices.Sort(m.tries)
			m.wantTries("a b")
			m.push("k", 2)
			m.changed(nil)
			synctest.Wait()
			m.isUnknown(false)
		})
	}
}

// A lock, a list and a sorted set have lines of their own, in each database.
func TestKindsAreSeparate(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "lock", waitRequest{})
		m.pop(m.Context(), "list", waitRequest{}, "k")
		m.pop(m.Context(), "set", waitRequest{Kind: forMembers}, "k")
		m.pop(m.Context(), "other", waitRequest{DB: 1}, "k")
		m.wantTries("lock lock list set other")
		m.announce("k")
		synctest.Wait()
		slices.Sort(m.tries)
		m.wantTries("list lock other set")
		m.pass("k") // wakes those that wait for the lock
		m.wantTries("lock")
		m.lines.released(1, []byte("k"))
		m.lines.released(0, []byte("l"))
		m.changed([]byte("l"))
		m.wantTries("")
		m.push("k", 3)
		m.changed(nil) // any key
		time.Sleep(ownNotices)
		synctest.Wait()
		m.isUnknown(false)
	})
}

// While nobody knows whether there is something, a client asks again soon, in its turn or not. At the
// end of its time it asks once more only in its turn.
func TestAClientThatLearnsNothingAsksAgainSoon(t *testing.T) {
	waiting(t, func(m *masters) {
		m.isUnknown(true)
		m.pop(m.Context(), "a", waitRequest{Wait: 330 * time.Millisecond}, "k")
		m.pop(m.Context(), "b", waitRequest{Wait: 330 * time.Millisecond}, "k")
		time.Sleep(320 * time.Millisecond)
		synctest.Wait()
		tries := map[string]int{}
		for _, name := range m.tries {
			tries[name]++
		}
		if a, b := tries["a"], tries["b"]; a < 4 || a > 8 || b < 4 || b > 7 {
			t.Errorf("%d and %d tries in 320 ms, want one every 50 to 100 ms", a, b)
		}
		m.isUnknown(false)
		time.Sleep(30 * time.Millisecond)
		synctest.Wait()
		slices.Sort(m.ends)
		if len(m.ends) != 2 || m.ends[0] != "a nothing after 330ms" {
			t.Errorf("ends: %q", m.ends)
		}
		m.isUnknown(false)
		m.pop(m.Context(), "c", waitRequest{}, "k")
		m.isUnknown(false)
		time.Sleep(700 * time.Millisecond)
		m.wantTries("") // it knows that there is nothing
		m.push("k", 1)
		m.announce("k")
		m.wantEnds("c took after 700ms")
	})
}

// No notice calls for a try of one without keys, so it asks now and then.
func TestWithoutKeysATryComesNowAndThen(t *testing.T) {
	waiting(t, func(m *masters) {
		m.pop(m.Context(), "a", waitRequest{Wait: time.Second})
		m.wantTries("a")
		time.Sleep(pollMost)
		m.wantTries("a")
		time.Sleep(time.Second)
		if synctest.Wait(); len(m.tries) < 9 || len(m.tries) > 20 {
			t.Errorf("%d tries in a second", len(m.tries))
		}
		m.wantEnds("a nothing after 1s")
	})
}

// A try out of turn waits while the head makes one. It is not made if the time is over before.
func TestATryOutOfTurnWaitsForTheHead(t *testing.T) {
	waiting(t, func(m *masters) {
		m.takes = 10 * time.Millisecond
		m.pop(m.Context(), "a", waitRequest{}, "k")
		m.pop(m.Context(), "b", waitRequest{}, "k")
		m.pop(m.Context(), "c", waitRequest{Wait: time.Millisecond}, "k")
		time.Sleep(2 * time.Millisecond)
		m.wantTries("")
		m.wantEnds("c unheard after 1ms")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		slices.Sort(m.tries)
		m.wantTries("a a b")
		m.push("k", 2)
		m.announce("k")
		time.Sleep(time.Second)
		m.wantTries("a b")
		if len(m.ends) != 2 {
			t.Errorf("ends: %q", m.ends)
		}
	})
}

// Blocked clients have no end but their own, and wait while the process ends.
func TestWithoutClosingAWaitGoesOn(t *testing.T) {
	waiting(t, func(m *masters) {
		close(m.closing)
		m.pop(m.Context(), "a", waitRequest{}, "k")
		m.push("k", 1)
		m.announce("k")
		m.wantEnds("a took after 0s")
	})
}

// What a client got that leaves during its try is given back, and after a panic nobody knows who has
// the lock. The next in line asks at once, without a notice.
func TestTheNextAsksAfterATryThatCountsForNothing(t *testing.T) {
	for _, panics := range []bool{false, true} {
		waiting(t, func(m *masters) {
			m.hold("x", "k")
			ctx, leave := context.WithCancel(m.Context())
			tries := 0
			go func() {
				defer func() { _ = recover() }()
				m.lines.serve(ctx, waitRequest{Keys: [][]byte{[]byte("k")}, Wait: time.Minute}, func() tryResult {
					if tries++; tries < 3 {
						return tryRefused
					}
					leave()
					if panics {
						panic("defect")
					}
					return tryGranted
				})
			}()
			synctest.Wait()
			m.acquire(m.Context(), "b", waitRequest{})
			m.pass("k")
			m.wantEnds("b granted after 0s waited")
			if tries != 3 {
				t.Errorf("%d tries", tries)
			}
			leave()
		})
	}
}

// One that is the head of one line, and behind another's head in a second line, does not end the try of that other.
func TestTheEndOfATryConcernsOnlyTheLinesThatItLeads(t *testing.T) {
	waiting(t, func(m *masters) {
		m.pop(m.Context(), "head", waitRequest{}, "j")
		m.wantTries("head head")
		m.takes = 100 * time.Millisecond
		m.announce("j")
		synctest.Wait()
		m.takes = 10 * time.Millisecond
		m.pop(m.Context(), "both", waitRequest{}, "k", "j")
		time.Sleep(30 * time.Millisecond)
		m.pop(m.Context(), "last", waitRequest{}, "j")
		time.Sleep(20 * time.Millisecond)
		m.wantTries("both both") // the last one waits for the head's
		m.push("j", 3)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(m.ends) != 3 {
			t.Errorf("ends: %q", m.ends)
		}
	})
}
