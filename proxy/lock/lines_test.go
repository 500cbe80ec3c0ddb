package lock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// masters are fake masters with locks, which announce changes.
type masters struct {
	*testing.T
	lines     *lines
	changed   func(key []byte)
	available atomic.Bool
	closing   chan struct{}
	takes     time.Duration // how long a try takes

	mu      sync.Mutex
	holders map[string]string // by database and key
	lists   map[string]int    // elements by key
	unknown bool              // nobody can know who holds a lock
	tries   []string
	ends    []string
	tracked []string
}

// waiting runs a test in fake time. At its end nobody may be in line.
func waiting(t *testing.T, test func(m *masters)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &masters{T: t, holders: map[string]string{}, lists: map[string]int{}, closing: make(chan struct{})}
		m.available.Store(true)
		m.lines = newLines(Changes{Available: m.available.Load, Subscribe: func(changed func([]byte)) Tracker {
			m.changed = changed
			return m
		}})
		test(m)
		synctest.Wait()
		if len(m.lines.keys) > 0 || m.lines.places.Load() != 0 {
			t.Errorf("lines are left: %v", m.lines.keys)
		}
		for _, key := range m.tracked {
			t.Errorf("%s is still tracked", key)
		}
	})
}

func (m *masters) Track(_ context.Context, keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if !slices.Contains(m.tracked, key) {
			m.tracked = append(m.tracked, key)
		}
	}
}

func (m *masters) Untrack(keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tracked = slices.DeleteFunc(m.tracked, func(key string) bool { return slices.Contains(keys, key) })
}

func (m *masters) announce(key string) {
	m.mu.Lock()
	tracked := slices.Contains(m.tracked, key)
	m.mu.Unlock()
	if tracked {
		m.changed([]byte(key))
	}
}

// try takes all locks for a client, or none. A client may take its own again.
func (m *masters) try(name string, r waitRequest) tryResult {
	time.Sleep(m.takes)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries = append(m.tries, name)
	if m.unknown {
		return tryUndecided
	}
	for _, key := range r.Keys {
		if by := m.holders[lockName(r.DB, key)]; by != "" && (by != name || !r.AtOnce) {
			return tryRefused
		}
	}
	for _, key := range r.Keys {
		m.holders[lockName(r.DB, key)] = name
	}
	return tryGranted
}

func lockName(db int, key []byte) string { return fmt.Sprintf("%d %s", db, key) }

// acquire starts a client and returns when it waits or has its end.
func (m *masters) acquire(ctx context.Context, name string, r waitRequest) {
	if r.Wait == 0 {
		r.Wait = time.Minute
	}
	if r.Keys == nil {
		r.Keys = [][]byte{[]byte("k")}
	}
	r.Closing = m.closing
	began := time.Now()
	go func() {
		waited := ""
		last := tryUndecided
		r.Waits = func() { waited += " waited" }
		tried := m.lines.serve(ctx, r, func() tryResult {
			last = m.try(name, r)
			return last
		})
		said := [...]string{"granted", "refused", "undecided yet", "undecided"}[last]
		switch {
		case ctx.Err() != nil && last != tryGranted:
			said = "gone"
		case !tried:
			said = "unheard"
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ends = append(m.ends, fmt.Sprintf("%s %s after %v%s", name, said, time.Since(began), waited))
	}()
	synctest.Wait()
}

// hold takes a lock for a client that is not in line.
func (m *masters) hold(name, key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holders[lockName(0, []byte(key))] = name
}

// release frees a lock. Nobody hears of it yet.
func (m *masters) release(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.holders, lockName(0, []byte(key)))
}

// pass is a release through this process.
func (m *masters) pass(key string) {
	m.release(key)
	m.lines.released(0, []byte(key))
	synctest.Wait()
}

func (m *masters) wantTries(want string) {
	m.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := strings.Join(m.tries, " "); got != want {
		m.Errorf("tries: %s\nwant: %s", got, want)
	}
	m.tries = nil
}

func (m *masters) wantEnds(want ...string) {
	m.Helper()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Equal(m.ends, want) {
		m.Errorf("ends: %q\nwant: %q", m.ends, want)
	}
	m.ends = nil
}

// A lock that nobody holds is taken by one try, and nothing is tracked.
func TestAFreeLockIsTakenAtOnce(t *testing.T) {
	waiting(t, func(m *masters) {
		m.acquire(m.Context(), "a", waitRequest{})
		m.wantTries("a")
		m.wantEnds("a granted after 0s")
		if len(m.tracked) > 0 {
			t.Errorf("tracked: %q", m.tracked)
		}
	})
}

// Each release through this process goes to the first in the line, by one try.
func TestALineIsServedInItsOrder(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		for _, name := range []string{"a", "b", "c", "d"} {
			m.acquire(m.Context(), name, waitRequest{})
		}
		m.wantTries("a a") // the second when it hears of changes
		for i, name := range []string{"a", "b", "c", "d"} {
			time.Sleep(time.Millisecond)
			m.pass("k")
			m.wantTries(name)
			m.wantEnds(fmt.Sprintf("%s granted after %v waited", name, time.Duration(i+1)*time.Millisecond))
		}
	})
}

// The masters' notice of a change wakes the head only. It is not believed: the head asks.
func TestANoticeWakesTheHead(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{})
		m.acquire(m.Context(), "b", waitRequest{})
		m.wantTries("a a")
		m.announce("k")
		m.wantTries("a")
		m.release("k")
		m.announce("k")
		m.wantTries("a")
		m.wantEnds("a granted after 0s waited")
		m.pass("k")
		m.wantEnds("b granted after 0s waited")
	})
}

// A grant changes the key, too. Its own notices do not make the next in line ask, but a
// release that is only told at the same time is not lost.
func TestTheNoticesOfAGrantWakeNobodyAtOnce(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{})
		m.acquire(m.Context(), "b", waitRequest{})
		m.pass("k")
		m.wantTries("a a a")
		m.announce("k")
		m.announce("k")
		m.wantTries("")
		time.Sleep(ownNotices)
		m.wantTries("b")
		m.wantEnds("a granted after 0s waited")
		m.pass("k")
		m.wantTries("b")
		m.acquire(m.Context(), "c", waitRequest{})
		m.wantTries("c c")
		m.release("k") // through another process
		m.announce("k")
		m.wantTries("c")
		m.wantEnds(fmt.Sprintf("b granted after %v waited", ownNotices), "c granted after 0s waited")
	})
}

// The time is over: the head asks once more, in its turn. The others do not, so none takes
// the lock from the one whose turn it is.
func TestTheTimeIsOver(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{Wait: 500 * time.Millisecond})
		m.acquire(m.Context(), "b", waitRequest{Wait: 300 * time.Millisecond})
		m.wantTries("a a")
		time.Sleep(300 * time.Millisecond)
		m.wantEnds("b unheard after 300ms waited")
		m.wantTries("")
		time.Sleep(200 * time.Millisecond)
		m.wantTries("a")
		m.wantEnds("a refused after 500ms waited")
	})
}

// The last try of the head may get the lock.
func TestTheLastTryMayBeGranted(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{Wait: 500 * time.Millisecond})
		m.release("k")
		time.Sleep(500 * time.Millisecond)
		m.wantEnds("a granted after 500ms waited")
	})
}

// A time that ends while a try is under way does not end the try.
func TestATryThatIsUnderWayIsAwaited(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{Wait: 500 * time.Millisecond})
		time.Sleep(480 * time.Millisecond)
		m.takes = 50 * time.Millisecond
		m.pass("k")
		time.Sleep(time.Second)
		m.wantEnds("a granted after 530ms waited")
	})
}

// A client that leaves gives up its place at once. The line goes on behind it.
func TestAClientThatLeavesGivesUpItsPlace(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		head, headLeaves := context.WithCancel(m.Context())
		middle, middleLeaves := context.WithCancel(m.Context())
		m.acquire(head, "a", waitRequest{})
		m.acquire(middle, "b", waitRequest{})
		m.acquire(m.Context(), "c", waitRequest{})
		m.acquire(m.Context(), "d", waitRequest{})
		middleLeaves()
		m.wantEnds("b gone after 0s waited")
		headLeaves()
		m.wantEnds("a gone after 0s waited")
		m.pass("k")
		m.wantEnds("c granted after 0s waited")
		m.pass("k")
		m.wantEnds("d granted after 0s waited")
	})
}

// A client that leaves during its try may have got the lock, which is then given back. The
// next in line asks at once.
func TestAClientThatLeavesDuringItsTry(t *testing.T) {
	waiting(t, func(m *masters) {
		m.takes = 10 * time.Millisecond
		ctx, leaves := context.WithCancel(m.Context())
		m.acquire(ctx, "a", waitRequest{})
		m.acquire(m.Context(), "b", waitRequest{})
		leaves()
		time.Sleep(15 * time.Millisecond)
		m.release("k")
		time.Sleep(time.Second)
		m.wantTries("a b")
		m.wantEnds("a granted after 10ms", "b granted after 20ms waited")
	})
}

// Nobody knows who holds the lock: each in line learns that by a try of its own.
func TestNoQuorumIsPassedDownTheLine(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{})
		m.acquire(m.Context(), "b", waitRequest{})
		m.acquire(m.Context(), "c", waitRequest{})
		m.unknown = true
		m.announce("k")
		m.wantTries("a a a b c")
		m.wantEnds("a undecided after 0s waited", "b undecided after 0s waited", "c undecided after 0s waited")
	})
}

// A panic in a try ends the place, and the line goes on.
func TestADefectInATryFreesTheLine(t *testing.T) {
	waiting(t, func(m *masters) {
		entered := make(chan struct{})
		go func() {
			defer func() { _ = recover() }()
			m.lines.serve(m.Context(), waitRequest{Keys: [][]byte{[]byte("k")}, Wait: time.Second}, func() tryResult {
				close(entered)
				time.Sleep(time.Millisecond)
				panic("defect")
			})
		}()
		<-entered
		m.acquire(m.Context(), "a", waitRequest{})
		time.Sleep(time.Second)
		m.wantEnds("a granted after 1ms waited")
	})
}

// If masters announce nothing, the head polls. A notice that is lost costs a second.
func TestAHeadAsksAgainWithoutNotices(t *testing.T) {
	for _, available := range []bool{true, false} {
		waiting(t, func(m *masters) {
			m.available.Store(available)
			m.hold("x", "k")
			m.acquire(m.Context(), "a", waitRequest{})
			m.acquire(m.Context(), "b", waitRequest{})
			m.release("k")
			if !available {
				time.Sleep(pollMost)
			} else {
				time.Sleep(recheck)
			}
			synctest.Wait()
			if by := m.holders["0 k"]; by != "a" {
				t.Errorf("announced: %t: the holder is %q", available, by)
			}
			m.pass("k")
			m.wantEnds(m.ends[0], m.ends[1])
		})
	}
}

// When the process ends, nobody waits any longer, and new requests do not begin to.
func TestNobodyWaitsWhileClosing(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{})
		m.acquire(m.Context(), "b", waitRequest{})
		close(m.closing)
		synctest.Wait()
		slices.Sort(m.ends)
		m.wantEnds("a refused after 0s waited", "b unheard after 0s waited")
		m.acquire(m.Context(), "c", waitRequest{})
		m.wantEnds("c refused after 0s waited")
	})
}

// The lines of one key in several databases are separate. A notice names no database.
func TestDatabasesAreSeparate(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{})
		m.acquire(m.Context(), "b", waitRequest{DB: 1})
		m.wantEnds("b granted after 0s")
		m.acquire(m.Context(), "c", waitRequest{DB: 1})
		m.pass("k")
		m.wantEnds("a granted after 0s waited")
		delete(m.holders, "1 k")
		time.Sleep(ownNotices)
		m.announce("k")
		m.wantEnds(fmt.Sprintf("c granted after %v waited", ownNotices))
	})
}

// Requests for several locks join all their lines at once, so no two wait for each other.
func TestSeveralLocksAtOnce(t *testing.T) {
	both := [][]byte{[]byte("k"), []byte("l"), []byte("k")}
	turned := [][]byte{[]byte("l"), []byte("k")}
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.hold("y", "l")
		m.acquire(m.Context(), "a", waitRequest{Keys: both})
		m.acquire(m.Context(), "b", waitRequest{Keys: turned})
		m.acquire(m.Context(), "c", waitRequest{Keys: turned[:1]})
		m.pass("l")
		m.wantEnds()
		m.pass("k")
		m.wantEnds("a granted after 0s waited")
		m.pass("k")
		m.pass("l")
		m.wantEnds("b granted after 0s waited")
		m.pass("l")
		m.wantEnds("c granted after 0s waited")
	})
}

// A request that is made at once may be the holder's own. It is tried at once, behind others too,
// and keeps its place if it is refused.
func TestAHolderIsNotHeldBack(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{AtOnce: true})
		m.acquire(m.Context(), "b", waitRequest{AtOnce: true})
		m.acquire(m.Context(), "c", waitRequest{})
		m.wantTries("a a b")
		for range 2 { // a grant out of turn calls for no try of the head, for which the next one would wait
			m.acquire(m.Context(), "x", waitRequest{AtOnce: true})
			m.wantEnds("x granted after 0s")
			m.wantTries("x")
		}
		for _, name := range []string{"a", "b", "c"} {
			m.pass("k")
			m.wantTries(name)
			m.wantEnds(name + " granted after 0s waited")
		}
	})
}

// While the lock is handed over, a try out of turn waits, so it does not take the lock from the one
// whose turn it is.
func TestATryOutOfTurnWaitsForAHandOver(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{})
		m.wantTries("a a")
		m.takes = 10 * time.Millisecond
		m.pass("k")
		m.acquire(m.Context(), "b", waitRequest{AtOnce: true})
		time.Sleep(10 * time.Millisecond)
		m.wantEnds("a granted after 10ms waited")
		time.Sleep(10 * time.Millisecond)
		m.wantTries("a b")
		m.pass("k")
		time.Sleep(time.Second)
		m.wantEnds("b granted after 30ms waited")
	})
}

// A notice that may be that of a grant may also be that of a release. The head tries when
// these notices have come. Nobody overtakes it until then.
func TestATryOutOfTurnWaitsForTheNoticesOfAGrant(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.acquire(m.Context(), "a", waitRequest{})
		m.acquire(m.Context(), "b", waitRequest{})
		m.pass("k")
		m.wantEnds("a granted after 0s waited")
		m.release("k") // through another process
		m.announce("k")
		m.acquire(m.Context(), "c", waitRequest{AtOnce: true})
		m.wantEnds()
		time.Sleep(ownNotices)
		m.wantEnds(fmt.Sprintf("b granted after %v waited", ownNotices))
		m.pass("k")
		m.wantEnds(fmt.Sprintf("c granted after %v waited", ownNotices))
		m.wantTries("a a a b c c")
	})
}

// Many clients take one lock. Each gets it once, one at a time, in their order.
func TestACrowdIsServedInItsOrder(t *testing.T) {
	waiting(t, func(m *masters) {
		m.hold("x", "k")
		m.takes = time.Millisecond
		for i := range 200 {
			m.acquire(m.Context(), fmt.Sprint(i), waitRequest{})
		}
		time.Sleep(10 * time.Millisecond)
		m.wantTries("0 0")
		for i := range 200 {
			m.pass("k")
			time.Sleep(2 * time.Millisecond)
			m.announce("k")
			m.wantTries(fmt.Sprint(i))
		}
		m.ends = nil
	})
}

// The head of a line that is not the first in another one makes no try. A try out of turn does not
// wait for it.
func TestATryOutOfTurnDoesNotWaitForAHeadThatMakesNone(t *testing.T) {
	for atOnce, tries := range map[bool]string{false: "a a", true: "a a b"} { // b makes one only out of its turn
		waiting(t, func(m *masters) {
			m.hold("x", "l")
			m.acquire(m.Context(), "a", waitRequest{Keys: [][]byte{[]byte("l")}})
			m.acquire(m.Context(), "b", waitRequest{Keys: [][]byte{[]byte("k"), []byte("l")}, AtOnce: atOnce})
			m.wantTries(tries)
			m.acquire(m.Context(), "c", waitRequest{AtOnce: true})
			m.wantEnds("c granted after 0s")
			m.pass("l")
			m.wantEnds("a granted after 0s waited")
			m.pass("k")
			m.pass("l")
			m.wantEnds("b granted after 0s waited")
		})
	}
}
