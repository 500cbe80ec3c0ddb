package blocking

import (
	"context"
	"slices"
	"sync"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// A Room holds the blocked commands that wait for their keys to change. A nil Room polls.
// Any number of goroutines may use it.
//
// Commands that would take the same thing from a key stand in one line. A change wakes
// only the first of the line: if that gets nothing, there is nothing for the others
// either. A command that leaves the head of a line, for any reason, wakes the next. So
// some command always makes a try after a change.
type Room struct {
	available func() bool
	tracker   Tracker

	mu    sync.Mutex
	lines map[string]map[lineID]*line // by key, in any database
}

// Changes tell that keys have changed on the masters.
type Changes struct {
	Available func() bool                               // whether the masters announce changes now
	Subscribe func(onEvent func(redlock.Event)) Tracker // nil: the masters never announce any
}

// A Tracker sets the keys whose changes are announced. A subscriber of package redlock is
// one. It may call onEvent from Track, but not from Untrack.
type Tracker interface {
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

type line struct{ waiters []*waiter }

// A waiter is one blocked command. Its wake has room for one signal, so that a change
// during a try is not lost.
type waiter struct {
	wake  chan struct{}
	keys  []string
	lines []*line // one for each of keys
	id    lineID
}

// New makes a Room. It subscribes for as long as the process lives. It returns nil if the
// masters never announce changes.
func New(c Changes) *Room {
	if c.Subscribe == nil {
		return nil
	}
	r := &Room{available: c.Available, lines: map[string]map[lineID]*line{}}
	r.tracker = c.Subscribe(r.onEvent)
	return r
}

// join puts a command at the end of its lines. It returns when the room hears of
// changes of the command's keys, or ctx has ended. The caller must leave in both cases.
// It returns nil if masters announce no changes, the command has no key to wait for, or
// the kind of thing it takes is unknown.
func (r *Room) join(ctx context.Context, request *redlock.RunRequest) *waiter {
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
			r.lines[key] = map[lineID]*line{}
		}
		l := r.lines[key][w.id]
		if l == nil {
			l = &line{}
			r.lines[key][w.id] = l
		}
		l.waiters = append(l.waiters, w)
		w.lines = append(w.lines, l)
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
func (r *Room) leave(w *waiter) {
	if w == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, key := range w.keys {
		l := w.lines[i]
		at := slices.Index(l.waiters, w)
		l.waiters = slices.Delete(l.waiters, at, at+1)
		if at == 0 {
			l.wakeFirst()
		}
		if len(l.waiters) > 0 {
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
func (r *Room) first(w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(w.lines, func(l *line) bool { return l.waiters[0] == w })
}

// onEvent wakes the lines of keys that have changed. The subscriber calls it.
func (r *Room) onEvent(e redlock.Event) {
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

func wakeLines(lines map[lineID]*line) {
	for _, l := range lines {
		l.wakeFirst()
	}
}

func (l *line) wakeFirst() {
	if len(l.waiters) == 0 {
		return
	}
	select {
	case l.waiters[0].wake <- struct{}{}:
	default:
	}
}
