package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

// A queue holds requests for turns in a bubble of fake time.
type queue struct {
	*testing.T
	*Lanes[string]
	mu   sync.Mutex
	said []string // the results of requests, in order
}

// queueing runs a test in which a request has the turn on "k".
func queueing(t *testing.T, test func(q *queue, turn Turn[string])) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		q := &queue{T: t, Lanes: New[string](nil)}
		test(q, q.enter(t.Context(), Queueing{}, "k"))
		synctest.Wait()
		q.wantEmpty()
	})
}

func (q *queue) enter(ctx context.Context, how Queueing, keys ...string) Turn[string] {
	turn, err := q.Enter(ctx, 0, keys, how)
	if err != nil || turn.Answer != nil {
		q.Errorf("%v, %v", err, turn.Answer)
	}
	return turn
}

// wait starts a request that waits. When it gets its turn it notes its name and leaves.
func (q *queue) wait(ctx context.Context, name string, how Queueing, keys ...string) {
	go func() {
		turn, err := q.Enter(ctx, 0, keys, how)
		defer turn.Leave()
		q.mu.Lock()
		defer q.mu.Unlock()
		switch {
		case err != nil:
			name += " " + err.Error()
		case turn.Answer != nil:
			name += " " + *turn.Answer
		}
		q.said = append(q.said, name)
	}()
	synctest.Wait()
}

func (q *queue) want(said ...string) {
	q.Helper()
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !slices.Equal(q.said, said) {
		q.Errorf("%q, want %q", q.said, said)
	}
	q.said = nil
}

// wantAll is want for results in any order.
func (q *queue) wantAll(said ...string) {
	q.Helper()
	synctest.Wait()
	q.mu.Lock()
	slices.Sort(q.said)
	q.mu.Unlock()
	q.want(said...)
}

// wantEmpty fails the test if any lane is left.
func (l *Lanes[A]) wantEmpty(t *testing.T) {
	t.Helper()
	for i := range l.shards {
		if n := len(l.shards[i].lanes); n > 0 {
			t.Errorf("%d lanes are left", n)
		}
	}
}

func (q *queue) wantEmpty() {
	q.Helper()
	q.Lanes.wantEmpty(q.T)
}

func TestTurnsAreInOrder(t *testing.T) {
	queueing(t, func(q *queue, turn Turn[string]) {
		for _, name := range []string{"a", "b", "c"} {
			q.wait(q.Context(), name, Queueing{}, "k")
		}
		q.wait(q.Context(), "another key", Queueing{}, "l")
		q.want("another key")
		turn.Leave()
		q.want("a", "b", "c")
	})
}

// A Next request goes before those that wait, but behind other Next requests.
func TestTurnsOfHoldersComeFirst(t *testing.T) {
	queueing(t, func(q *queue, turn Turn[string]) {
		q.wait(q.Context(), "a", Queueing{}, "k", "later")
		q.wait(q.Context(), "b", Queueing{Next: true}, "k", "later")
		q.wait(q.Context(), "c", Queueing{}, "k", "later")
		q.wait(q.Context(), "d", Queueing{Next: true}, "k", "later")
		turn.Leave()
		q.want("b", "d", "a", "c")
	})
}

func TestARefusalIsShared(t *testing.T) {
	queueing(t, func(q *queue, turn Turn[string]) {
		shares := Queueing{Acquires: true, Shares: true}
		q.wait(q.Context(), "a", shares, "k")
		q.wait(q.Context(), "alone", Queueing{Acquires: true}, "k")
		q.Send(&Question{Keys: []string{"k"}, Creates: true}, 0, nothing)
		q.wait(q.Context(), "late", shares, "k")
		turn.Refuse("held")
		q.want("a held")
		turn.Leave()
		q.want("alone", "late")
	})
}

func TestAllThatAcquireGiveUp(t *testing.T) {
	queueing(t, func(q *queue, turn Turn[string]) {
		q.wait(q.Context(), "a", Queueing{Acquires: true, Shares: true}, "k")
		q.wait(q.Context(), "b", Queueing{Acquires: true}, "k")
		q.wait(q.Context(), "swap", Queueing{}, "k")
		turn.GiveUp("nobody can vote")
		q.wantAll("a nobody can vote", "b nobody can vote")
		turn.Leave()
		q.want("swap")
	})
}

func TestWhoHasGoneHasNoTurn(t *testing.T) {
	queueing(t, func(q *queue, turn Turn[string]) {
		ctx, end := context.WithCancel(q.Context())
		q.wait(ctx, "a", Queueing{}, "j", "k", "l")
		q.wait(q.Context(), "b", Queueing{}, "j")
		end()
		q.wantAll("a context canceled", "b")
		turn.Leave()
		q.wait(ctx, "c", Queueing{}, "k")
		q.want("c context canceled")
	})
}

// A waiting request may get its turn and lose its client at the same moment. The turn
// must go on to the next request.
func TestATurnIsNotLost(t *testing.T) {
	l := New[string](nil)
	keys := []string{"k"}
	for range 1000 {
		turn, _ := l.Enter(t.Context(), 0, keys, Queueing{})
		ctx, end := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if turn, err := l.Enter(ctx, 0, keys, Queueing{}); err == nil {
				turn.Leave()
			} else if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		waiting.Go(end)
		waiting.Go(turn.Leave)
		waiting.Wait()
		l.wantEmpty(t)
	}
}

// A request may go while it waits, when its turn has come, and when it has its answer.
func TestWhoGoesPassesOnOnlyItsOwnTurn(t *testing.T) {
	isCalled := func(w *waiter[string]) bool {
		select {
		case <-w.called:
			return true
		default:
			return false
		}
	}
	ln := &lane[string]{taken: true}
	first, second := ln.enter(Queueing{}), ln.enter(Queueing{})
	answered, third, last := ln.enter(Queueing{Acquires: true}), ln.enter(Queueing{}), ln.enter(Queueing{})
	ln.withdraw(third)
	if isCalled(first) {
		t.Error("the turn was passed on by one that waited for it")
	}
	ln.answer("no", func(w *waiter[string]) bool { return w.Acquires })
	ln.withdraw(answered)
	if isCalled(first) {
		t.Error("the turn was passed on by one that had its answer")
	}
	ln.leave()
	ln.withdraw(first)
	if !isCalled(second) || isCalled(last) {
		t.Error("the turn of one that went was not passed on")
	}
}

// No two requests wait for each other.
func TestTurnsOnManyKeys(t *testing.T) {
	l := New[string](nil)
	var busy [4]sync.Mutex
	var running sync.WaitGroup
	for i := range 8 {
		running.Go(func() {
			for n := range 500 {
				first, second := (i+n)%4, (i*n+1)%4
				turn, err := l.Enter(t.Context(), 0, []string{string(rune('a' + first)), string(rune('a' + second))}, Queueing{Next: n%3 == 0})
				if err != nil {
					t.Error(err)
					return
				}
				has := slices.Compact([]int{first, second})
				for _, k := range has {
					if !busy[k].TryLock() {
						t.Error("two have the turn on a key")
						return
					}
				}
				for _, k := range has {
					busy[k].Unlock()
				}
				turn.Leave()
			}
		})
	}
	running.Wait()
	l.wantEmpty(t)
}
