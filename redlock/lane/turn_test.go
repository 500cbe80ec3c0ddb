package lane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

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
