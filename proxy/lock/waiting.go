package lock

import (
	"context"
	"slices"
	"sync"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// waitingRoom holds the blocked commands that wait for their keys to change. A process
// has one waiting room, which subscribes to the changes.
//
// Commands that would take the same thing from a key stand in one line. A change wakes
// only the first of the line: if that gets nothing, there is nothing for the others
// either. A command that leaves the head of a line, for any reason, wakes the next. So
// some command always makes a try after a change.
type waitingRoom struct {
	available func() bool
	tracker   KeyTracker

	mu    sync.Mutex
	lines map[string]map[lineID]*waitingLine // by key, in any database
}

// Changes tell a waiting room that keys have changed.
type Changes struct {
	Available func() bool                               // whether the masters announce changes now
	Subscribe func(hear func(redlock.Event)) KeyTracker // nil: the masters never announce any
}

// KeyTracker sets the keys whose changes a waiting room hears of. A subscriber of
// package redlock is one.
type KeyTracker interface {
	Track(ctx context.Context, keys ...string)
	Untrack(keys ...string)
}

// lineID distinguishes the lines on one key.
type lineID struct {
	db    int
	takes takes
}

// takes is the kind of thing that a blocking command takes from its keys.
type takes uint8

const (
	takesUnknown takes = iota // a module's command
	takesElements
	takesMembers
)

type waitingLine struct{ waiters []*waiter }

// A waiter is one blocked command. Its wake has room for one signal, so that a change
// during a try is not lost.
type waiter struct {
	wake  chan struct{}
	keys  []string
	lines []*waitingLine // one for each of keys
	id    lineID
}

// newWaitingRoom makes a room with one subscriber, which the locker ends. It returns
// nil if the masters never announce changes.
func newWaitingRoom(c Changes) *waitingRoom {
	if c.Subscribe == nil {
		return nil
	}
	r := &waitingRoom{available: c.Available, lines: map[string]map[lineID]*waitingLine{}}
	r.tracker = c.Subscribe(r.hear)
	return r
}

// join puts a command at the end of its lines. It returns when the room hears of
// changes of the command's keys, or ctx has ended. The caller must leave in both cases.
// It returns nil if masters announce no changes, the command has no key to wait for, or
// the kind of thing it takes is unknown.
func (r *waitingRoom) join(ctx context.Context, request *redlock.RunRequest) *waiter {
	w := &waiter{
		wake: make(chan struct{}, 1),
		keys: waitsFor(request),
		id:   lineID{db: request.DB, takes: takenBy(request.Args[0])},
	}
	if r == nil || !r.available() || len(w.keys) == 0 || w.id.takes == takesUnknown {
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

// waitsFor returns the keys from which a command may take something. In the line of a
// key that it only writes, it would block the commands behind it.
func waitsFor(request *redlock.RunRequest) []string {
	if name := request.Args[0]; wire.IsWord(name, "BLMOVE") || wire.IsWord(name, "BRPOPLPUSH") {
		return []string{string(request.Args[1])}
	}
	keys := make([]string, len(request.Keys))
	for i, key := range request.Keys {
		keys[i] = string(key)
	}
	return keys
}

// leave takes a command out of its lines.
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
			// The mutex is held, so that Untrack comes before the Track of the next
			// command that joins.
			r.tracker.Untrack(key)
		}
	}
}

// first tells whether w is the first in any of its lines.
func (r *waitingRoom) first(w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(w.lines, func(line *waitingLine) bool { return line.waiters[0] == w })
}

// hear wakes the lines of keys that have changed. The subscriber calls it.
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
