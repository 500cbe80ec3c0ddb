package redlock

import (
	"context"
	"slices"
	"sync"
)

// turns lets the requests of this process that may create a lock go one after
// the other for each key: the next is sent once the previous is decided and
// its undo is queued. So clients of one proxy never split a vote among
// themselves. What certainly is a release takes no turns.
type turns struct {
	mu       sync.Mutex
	lines    map[lockKey][]*waiter // who waits; an entry means somebody has the turn
	arrivals uint64
}

// A lockKey is a key in its database.
type lockKey struct {
	db  int
	key string
}

// A waiter waits for its turn, or for an answer that holds for it, too.
type waiter struct {
	called  chan struct{} // closed when it is its turn, or it is answered
	arrival uint64
	manner
	answer *Outcome // read after called
}

// A manner is how somebody waits for his turn.
type manner struct {
	acquires bool // that nobody can vote answers him
	shares   bool // and so may a refusal of another
	next     bool // before those that wait already, but for who is next, too
}

func newTurns() *turns { return &turns{lines: map[lockKey][]*waiter{}} }

// take waits for the turn on all keys and returns how to pass it on. Next goes
// before those that want the lock, as a holder does. An error is ctx's: the client
// is gone and has no turn.
func (t *turns) take(ctx context.Context, db int, next bool, keys ...string) (pass func(), err error) {
	if len(keys) == 1 {
		k := lockKey{db, keys[0]}
		if _, err := t.takeOne(ctx, k, manner{next: next}); err != nil {
			return nil, err
		}
		return func() { t.pass(k) }, nil
	}
	// In one order for everybody, so that no two wait for each other.
	sorted := slices.Compact(slices.Sorted(slices.Values(keys)))
	for i, k := range sorted {
		if _, err := t.takeOne(ctx, lockKey{db, k}, manner{next: next}); err != nil {
			for _, taken := range sorted[:i] {
				t.pass(lockKey{db, taken})
			}
			return nil, err
		}
	}
	return func() {
		for _, k := range sorted {
			t.pass(lockKey{db, k})
		}
	}, nil
}

// takeOrBeAnswered is take for a plain acquire. Answered: a ballot that was sent
// while it waited has found the lock held, or that nobody can vote, so it need not
// ask again; there is no turn then. A crowd of waiters costs one ballot at a time.
// shares is false for who wants to know more than that the lock is held.
func (t *turns) takeOrBeAnswered(ctx context.Context, db int, key string, shares bool) (mine turn, answer *Outcome, err error) {
	k := lockKey{db, key}
	answer, err = t.takeOne(ctx, k, manner{acquires: true, shares: shares})
	return turn{turns: t, key: k}, answer, err
}

// A turn is somebody's until it is passed on.
type turn struct {
	turns *turns
	key   lockKey
	sent  uint64 // who arrived until then may share a refusal
}

// send says that the ballot is sent now.
func (u *turn) send() {
	u.turns.mu.Lock()
	u.sent = u.turns.arrivals
	u.turns.mu.Unlock()
}

// refuse answers all that were waiting when the ballot was sent.
func (u *turn) refuse() {
	u.answer(Outcome{Verdict: Lost}, func(w *waiter) bool { return w.shares && w.arrival <= u.sent })
}

// giveUp answers all acquires: nobody can vote now.
func (u *turn) giveUp(o Outcome) {
	u.answer(o, func(w *waiter) bool { return w.acquires })
}

func (u *turn) answer(o Outcome, whom func(*waiter) bool) {
	u.turns.mu.Lock()
	defer u.turns.mu.Unlock()
	u.turns.lines[u.key] = slices.DeleteFunc(u.turns.lines[u.key], func(w *waiter) bool {
		if !whom(w) {
			return false
		}
		w.answer = &o
		close(w.called)
		return true
	})
}

func (u *turn) pass() { u.turns.pass(u.key) }

func (t *turns) takeOne(ctx context.Context, k lockKey, how manner) (answer *Outcome, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	line, taken := t.lines[k]
	if !taken {
		t.lines[k] = nil
		t.mu.Unlock()
		return nil, nil
	}
	t.arrivals++
	mine := &waiter{called: make(chan struct{}), arrival: t.arrivals, manner: how}
	place := len(line)
	if how.next {
		if behind := slices.IndexFunc(line, func(w *waiter) bool { return !w.next }); behind >= 0 {
			place = behind
		}
	}
	t.lines[k] = slices.Insert(line, place, mine)
	t.mu.Unlock()
	select {
	case <-mine.called:
		return mine.answer, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.lines[k], mine)
	if i >= 0 {
		t.lines[k] = slices.Delete(t.lines[k], i, i+1)
	}
	t.mu.Unlock()
	if i < 0 && mine.answer == nil {
		t.pass(k) // the turn came at the same moment
	}
	return nil, ctx.Err()
}

func (t *turns) pass(k lockKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[k]
	if len(line) == 0 {
		delete(t.lines, k)
		return
	}
	t.lines[k] = line[1:]
	close(line[0].called)
}
