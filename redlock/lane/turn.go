package lane

import (
	"context"
	"slices"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/quorum"
)

// Queueing says how a request waits for its turn.
type Queueing struct {
	Next     bool // before all waiting requests that are not Next themselves
	Acquires bool // GiveUp answers it
	Shares   bool // Refuse answers it
}

// A Turn is the right of one request to create locks under its keys. The request keeps
// it until Leave.
type Turn[A any] struct {
	// Answer is set if another request's result holds for this one, too. Then this
	// request has no turn.
	Answer *A

	lanes *Lanes[A]
	db    int
	keys  []string
}

// Enter waits for the turn on all keys. The caller must not change keys until Leave.
// Enter returns an error only if ctx ends; the request has no turn then.
func (l *Lanes[A]) Enter(ctx context.Context, db int, keys []string, how Queueing) (Turn[A], error) {
	if len(keys) > 1 { // every request uses the same order, so no two wait for each other
		keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	}
	for i := range keys {
		if answer, err := l.enter(ctx, db, keys[i:i+1], how); answer != nil || err != nil {
			Turn[A]{lanes: l, db: db, keys: keys[:i]}.Leave()
			return Turn[A]{Answer: answer}, err
		}
	}
	return Turn[A]{lanes: l, db: db, keys: keys}, nil
}

// enter waits for the turn on one key, or for an answer, which it returns.
func (l *Lanes[A]) enter(ctx context.Context, db int, key []string, how Queueing) (*A, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var w *waiter[A]
	l.with(db, key, func(ln *lane[A]) { w = ln.enter(how) })
	if w == nil {
		return nil, nil
	}
	loop.FromContext(ctx).Leave()
	if l.loop.Wait(loop.Forever, w.called, ctx.Done()) == 0 {
		return w.answer, nil
	}
	l.with(db, key, func(ln *lane[A]) { ln.withdraw(w) })
	return nil, ctx.Err()
}

// Leave passes the turn on. A Turn without keys, as after an error, passes on nothing.
func (t Turn[A]) Leave() { t.lanes.with(t.db, t.keys, (*lane[A]).leave) }

// Refuse answers each waiting request that Shares and already waited when a question was
// sent. One that came later needs a question of its own.
func (t Turn[A]) Refuse(a A) {
	t.lanes.with(t.db, t.keys, func(ln *lane[A]) {
		ln.answer(a, func(w *waiter[A]) bool { return w.Shares && w.asked })
	})
}

// GiveUp answers all waiting requests that acquire, because nobody can vote now.
func (t Turn[A]) GiveUp(a A) {
	t.lanes.with(t.db, t.keys, func(ln *lane[A]) {
		ln.answer(a, func(w *waiter[A]) bool { return w.Acquires })
	})
}

// A lane is the state of one key.
type lane[A any] struct {
	taken       bool            // a request has the turn
	line        []*waiter[A]    // the requests that wait for it
	outstanding quorum.Set      // the masters that owe an answer
	settled     chan<- struct{} // receives after each Settle, for AwaitFree; may be nil
}

// A waiter is a request that waits for the turn on one key.
type waiter[A any] struct {
	Queueing
	called chan struct{} // closed when it gets its turn or an answer
	asked  bool          // a question was sent while it waited
	answer *A            // read after called
}

func (ln *lane[A]) isEmpty() bool { return !ln.taken && ln.outstanding == 0 }

// enter takes the turn and returns nil, or takes a place in the line for it.
func (ln *lane[A]) enter(how Queueing) *waiter[A] {
	if !ln.taken {
		ln.taken = true
		return nil
	}
	w := &waiter[A]{Queueing: how, called: make(chan struct{})}
	place := len(ln.line)
	if how.Next {
		if behind := slices.IndexFunc(ln.line, func(w *waiter[A]) bool { return !w.Next }); behind >= 0 {
			place = behind
		}
	}
	ln.line = slices.Insert(ln.line, place, w)
	return w
}

// leave gives the turn to the first in the line.
func (ln *lane[A]) leave() {
	ln.taken, ln.settled = len(ln.line) > 0, nil
	if ln.taken {
		close(ln.line[0].called)
		ln.line = ln.line[1:]
	}
}

// withdraw takes a request out of the line. If its turn came at the same moment, it
// passes that on.
func (ln *lane[A]) withdraw(w *waiter[A]) {
	if i := slices.Index(ln.line, w); i >= 0 {
		ln.line = slices.Delete(ln.line, i, i+1)
	} else if w.answer == nil {
		ln.leave()
	}
}

// answer gives a to the waiting requests for which applies is true. They leave the line.
func (ln *lane[A]) answer(a A, applies func(*waiter[A]) bool) {
	ln.line = slices.DeleteFunc(ln.line, func(w *waiter[A]) bool {
		if !applies(w) {
			return false
		}
		w.answer = &a
		close(w.called)
		return true
	})
}
