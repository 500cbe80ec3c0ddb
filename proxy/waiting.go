package proxy

import (
	"context"
	"slices"
	"sync"

	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// waitingRoom is where blocked commands wait for their keys to change. There is
// one for the process, and it is the one that hears of the changes.
//
// Commands that would take the same thing stand in one line, and only its first
// is woken: if it gets nothing there is nothing for the others either. Whoever
// leaves the head of a line, for whatever reason, wakes the next, so a change
// that came is always looked at by somebody after it came.
type waitingRoom struct {
	available func() bool // whether the masters tell of changes now
	tracker   keyTracker

	mu    sync.Mutex
	lines map[string]map[lineID]*waitingLine // by key, in whatever database
}

// keyTracker is the part of a subscriber that a waiting room needs.
type keyTracker interface {
	Track(ctx context.Context, keys ...string)
	Untrack(keys ...string)
}

// lineID tells lines on one key apart.
type lineID struct {
	db    int
	takes takes
}

// takes is what a blocking command takes from its keys.
type takes uint8

const (
	takesUnknown takes = iota // by a command of a module
	takesElements
	takesMembers
)

type waitingLine struct{ waiters []*waiter }

// A waiter is one blocked command. wake has room for one, so that a change
// during a try is not forgotten.
type waiter struct {
	wake  chan struct{}
	keys  []string
	lines []*waitingLine // of keys
	id    lineID
}

// newWaitingRoom makes a room that hears by one subscriber, which the locker
// ends.
func newWaitingRoom(available func() bool, subscribe pubsub.Subscribe) *waitingRoom {
	r := &waitingRoom{available: available, lines: map[string]map[lineID]*waitingLine{}}
	r.tracker = subscribe(r.hear)
	return r
}

// join puts a command at the end of its lines and returns when changes of its
// keys are heard of. The caller leaves, also if ctx has ended. nil: there is no
// key to wait for, or nobody knows what the command takes from one.
func (r *waitingRoom) join(ctx context.Context, request *redlock.RunRequest) *waiter {
	w := &waiter{
		wake: make(chan struct{}, 1),
		keys: waitsFor(request),
		id:   lineID{db: request.DB, takes: takenBy(request.Args[0])},
	}
	if len(w.keys) == 0 || w.id.takes == takesUnknown {
		return nil
	}
	r.mu.Lock()
	for _, key := range w.keys {
		if r.lines[key] == nil {
			r.lines[key] = map[lineID]*waitingLine{}
		}
		line := r.lines[key][w.id]
		if line == nil {
			line = &waitingLine{}
			r.lines[key][w.id] = line
		}
		line.waiters = append(line.waiters, w)
		w.lines = append(w.lines, line)
	}
	r.mu.Unlock()
	r.tracker.Track(ctx, w.keys...)
	return w
}

func takenBy(name []byte) takes {
	switch {
	case wire.IsWord(name, "BLPOP"), wire.IsWord(name, "BRPOP"), wire.IsWord(name, "BLMPOP"), wire.IsWord(name, "BLMOVE"), wire.IsWord(name, "BRPOPLPUSH"):
		return takesElements
	case wire.IsWord(name, "BZPOPMIN"), wire.IsWord(name, "BZPOPMAX"), wire.IsWord(name, "BZMPOP"):
		return takesMembers
	}
	return takesUnknown
}

// waitsFor are the keys in which a command may find something. In one that it
// only writes to it would stand in the way of those behind it.
func waitsFor(request *redlock.RunRequest) []string {
	if name := request.Args[0]; wire.IsWord(name, "BLMOVE") || wire.IsWord(name, "BRPOPLPUSH") {
		return []string{string(request.Args[1])}
	}
	return textsOf(request.Keys)
}

// leave ends join.
func (r *waitingRoom) leave(w *waiter) {
	if w == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, key := range w.keys {
		line := w.lines[i]
		at := slices.Index(line.waiters, w)
		line.waiters = slices.Delete(line.waiters, at, at+1)
		if at == 0 {
			line.wakeFirst()
		}
		if len(line.waiters) > 0 {
			continue
		}
		delete(r.lines[key], w.id)
		if len(r.lines[key]) == 0 {
			delete(r.lines, key)
			// With the mutex held, so that it comes before the Track of whoever
			// joins next.
			r.tracker.Untrack(key)
		}
	}
}

// first tells whether w is the first of any of its lines.
func (r *waitingRoom) first(w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(w.lines, func(line *waitingLine) bool { return line.waiters[0] == w })
}

// hear is the subscriber's.
func (r *waitingRoom) hear(e redlock.Event) {
	if e.Kind != redlock.EventChanged {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Key != nil {
		wakeLines(r.lines[string(e.Key)])
		return
	}
	for _, lines := range r.lines {
		wakeLines(lines)
	}
}

func wakeLines(lines map[lineID]*waitingLine) {
	for _, line := range lines {
		line.wakeFirst()
	}
}

func (l *waitingLine) wakeFirst() {
	if len(l.waiters) == 0 {
		return
	}
	select {
	case l.waiters[0].wake <- struct{}{}:
	default:
	}
}
