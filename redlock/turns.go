package redlock

import (
	"context"
	"slices"
	"sync"
)

// turns lets the requests of this process that may create a lock go one after
// the other for each key: the next is sent once the previous is decided and
// its undo is queued. So clients of one proxy never split a vote among
// themselves. Releases take no turns.
type turns struct {
	mu    sync.Mutex
	lines map[turnKey][]chan struct{} // who waits; an entry means somebody has the turn
}

type turnKey struct {
	db  int
	key string
}

func newTurns() *turns { return &turns{lines: map[turnKey][]chan struct{}{}} }

// take waits for the turn on all keys and returns how to pass it on. An error
// is ctx's: the client is gone and has no turn.
func (t *turns) take(ctx context.Context, db int, keys ...[]byte) (pass func(), err error) {
	if len(keys) == 1 {
		k := turnKey{db, string(keys[0])}
		if err := t.takeOne(ctx, k, false); err != nil {
			return nil, err
		}
		return func() { t.pass(k) }, nil
	}
	// In one order for everybody, so that no two wait for each other.
	sorted := make([]turnKey, len(keys))
	for i, k := range keys {
		sorted[i] = turnKey{db, string(k)}
	}
	slices.SortFunc(sorted, func(a, b turnKey) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return 0
	})
	sorted = slices.Compact(sorted)
	for i, k := range sorted {
		if err := t.takeOne(ctx, k, false); err != nil {
			for _, taken := range sorted[:i] {
				t.pass(taken)
			}
			return nil, err
		}
	}
	return func() {
		for _, k := range sorted {
			t.pass(k)
		}
	}, nil
}

// takeNext is take for a holder, who goes before those that want the lock.
func (t *turns) takeNext(ctx context.Context, db int, key []byte) (pass func(), err error) {
	k := turnKey{db, string(key)}
	if err := t.takeOne(ctx, k, true); err != nil {
		return nil, err
	}
	return func() { t.pass(k) }, nil
}

func (t *turns) takeOne(ctx context.Context, k turnKey, next bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	line, taken := t.lines[k]
	if !taken {
		t.lines[k] = nil
		t.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	if next {
		t.lines[k] = slices.Insert(line, 0, mine)
	} else {
		t.lines[k] = append(line, mine)
	}
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	i := slices.Index(t.lines[k], mine)
	if i >= 0 {
		t.lines[k] = slices.Delete(t.lines[k], i, i+1)
	}
	t.mu.Unlock()
	if i < 0 {
		t.pass(k) // the turn came at the same moment
	}
	return ctx.Err()
}

func (t *turns) pass(k turnKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.lines[k]
	if len(line) == 0 {
		delete(t.lines, k)
		return
	}
	t.lines[k] = line[1:]
	close(line[0])
}
