package lock

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// This file, line.go and place.go keep the lines of commands that wait for a key on the masters: of acquires
// whose rule has a wait, and of blocked commands such as BLPOP. They are served in the order in
// which they came.
//
// One line
//
// A line belongs to one key in one database, and to what those in it wait for (waitKind). Only the first in the
// line, its head, asks the masters. The others ask nothing. The head makes a try in these cases:
//
//   - A release passes through this process. released hands the lock over at once.
//   - The masters tell that the key has changed. So the head of each process hears of a
//     release or a push through another one, and of a lock that has ended. Then these heads compete.
//   - The line has just begun, or the head before ended without a grant: nobody could decide, or
//     it took an element of several.
//   - Nothing of this happened for a second. This is a safety net for lost notices. If the
//     masters announce no changes, the head polls instead.
//   - Its time is over: then it asks once more, in its turn.
//
// The first head of a line tries before the masters announce changes of the key to this process. If it must wait,
// it asks for them, and then tries again.
//
// A grant changes the key, too. A notice that comes shortly after a grant is most likely
// that of the grant. It calls for a try only when these notices have come, so none is lost.
//
// Out of turn
//
// Some try at once, also behind others (waitRequest.AtOnce), because they may get something while these wait.
// A holder may take its lock again by a script. If that writes nothing when it does, it looks like a refusal.
// Then it is held back for the whole wait, and gets its reply then. A blocked command may find something under
// another key. After a try that found no quorum (tryAgain), a place tries again soon, in its turn or not.
// All of them wait while the head makes a try, or is about to.
//
// Several keys
//
// A request with several keys stands in the line of each. An acquire waits until it is the head of all. It joins
// all of them at once, so of two acquires the same one is first in every line that both
// share. No two wait for each other. What takes from any key, as BLPOP does, is called as the head of any.
//
// What makes a wait longer than its turn
//
//   - If the notice of a release through another process comes within 25 ms after a grant
//     here, it waits until these 25 ms are over (ownNotices).
//   - A lost notice costs up to a second (recheck), and masters that announce nothing up to
//     100 ms (pollMost).
//   - Heads of several processes may split the votes. Package redlock then tries again after
//     a random delay, as often as its Retry says. If nobody wins, the undos are changes of
//     the key, and wake the heads again.
//   - A process hands a release of its own to its own line first, before other processes
//     hear of it. As long as that line is not empty, a head elsewhere seldom wins. Only its
//     Wait bounds that. No process knows whether others wait elsewhere, so none gives way.
//
// What a caller may rely on
//
// serve returns soon after its context has ended. A try that panics counts as undecided, so
// the line goes on. The lines never say that a lock is free. Only the masters decide that. A
// process has at most one request for each client, so the limit of clients bounds the lines.
//
// The mutex of lines is held while it calls Untrack, so it comes before those of the tracker. Track is called
// without it. No mutex is held during a try.

// Changes is how the lines hear of keys that have changed on the masters.
type Changes struct {
	// Available tells whether the masters announce changes of keys now.
	Available func() bool
	// Subscribe makes the Tracker, which calls changed with each changed key, nil for any
	// key. nil: the masters never announce changes.
	Subscribe func(changed func(key []byte)) Tracker
}

// A Tracker sets the keys whose changes are announced, in any database. It may call
// changed from Track, but not from Untrack.
type Tracker interface {
	// Track returns when changes of the keys are heard, or ctx has ended.
	Track(ctx context.Context, keys ...string)
	Untrack(keys ...string)
}

// A waitKind is what the requests in a line wait for.
type waitKind uint8

const (
	forLock     waitKind = iota // all keys of the request, to create them at once
	forElements                 // of a list under any of the keys
	forMembers                  // of a sorted set under any of the keys
)

// A waitRequest is a command that waits for its turn.
type waitRequest struct {
	DB   int
	Keys [][]byte // none: no notice calls for a try, so the request asks now and then; it is made at once
	Kind waitKind
	Wait time.Duration
	// AtOnce makes the first try at once, also behind others. It only waits while the head
	// of a line makes a try, or is about to.
	AtOnce bool
	// Closing is closed when the request may not wait any longer; nil: never.
	Closing <-chan struct{}
	// Waits is called once if serve does not try or return at once; it may be nil.
	Waits func()
}

// A tryResult is what a try came to.
type tryResult uint8

const (
	tryGranted   tryResult = iota // the client has the lock, and the next in line waits for its release
	tryRefused                    // there is nothing for the client; it waits
	tryAgain                      // nobody knows yet; the client asks again soon, in its turn or not
	tryUndecided                  // the request ends, and there may be something for the next in line
)

const (
	// ownNotices is how long after a grant its own notices come. Masters that tell later than
	// a quorum are reported after another 15 ms (package notify).
	ownNotices = 25 * time.Millisecond
	// recheck is the longest time between two tries of a head that waits for notices.
	recheck = time.Second
	// pollLeast and pollMost bound that time if the masters announce no changes.
	pollLeast = 50 * time.Millisecond
	pollMost  = 100 * time.Millisecond
)

// lines are those of one process. Any goroutine may use them.
type lines struct {
	available func() bool
	tracker   Tracker // nil: the masters never announce changes
	places    atomic.Int64

	mu   sync.Mutex
	keys map[string]*waitedKey
}

// newLines makes lines in which nobody waits. It subscribes for as long as the process lives.
func newLines(c Changes) *lines {
	all := &lines{available: c.Available, keys: map[string]*waitedKey{}}
	if c.Subscribe != nil {
		all.tracker = c.Subscribe(all.changed)
	}
	return all
}

// serve calls try each time that it is the request's turn, until a try ends the request, the time
// is over or the context has ended. It returns false if it made no try.
func (all *lines) serve(ctx context.Context, r waitRequest, try func() tryResult) (tried bool) {
	p := all.join(&r)
	defer p.leave()
	for until := time.Now().Add(r.Wait); p.await(ctx, until); {
		result := try()
		if ctx.Err() != nil { // its lock may be given back
			result = tryUndecided
		}
		p.settle(result)
		if result == tryGranted || result == tryUndecided {
			break
		}
	}
	return p.tried
}

// join takes a place at the end of the line of each key.
func (all *lines) join(r *waitRequest) *place {
	p := &place{all: all, request: r, id: lineID{r.DB, r.Kind}, wake: make(chan struct{}, 1)}
	now := time.Now()
	if r.AtOnce {
		p.own = now
	}
	all.places.Add(1)
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, name := range r.Keys {
		if slices.Contains(p.names, string(name)) {
			continue
		}
		k := all.keys[string(name)]
		if k == nil {
			k = &waitedKey{lines: map[lineID]*line{}}
			all.keys[string(name)] = k
		}
		l := k.lines[p.id]
		if l == nil {
			l = &line{due: now}
			k.lines[p.id] = l
		}
		l.places = append(l.places, p)
		p.names, p.keys, p.lines = append(p.names, string(name)), append(p.keys, k), append(p.lines, l)
	}
	return p
}

// released tells that a request through this process may have freed a lock. The head of
// its line makes a try at once.
func (all *lines) released(db int, name []byte) {
	if all.places.Load() == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if k := all.keys[string(name)]; k != nil {
		if l := k.lines[lineID{db, forLock}]; l != nil {
			l.dueAt(time.Now())
		}
	}
}

// changed is called with each key that the masters announce, nil for any key.
func (all *lines) changed(name []byte) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if name == nil {
		for _, k := range all.keys {
			k.changed()
		}
	} else if k := all.keys[string(name)]; k != nil {
		k.changed()
	}
}

// announces tells whether the masters announce changes now.
func (all *lines) announces() bool { return all.tracker != nil && all.available() }

// recheckAt is when a head that tried now tries again without a reason.
func (all *lines) recheckAt(now time.Time) time.Time {
	if !all.announces() {
		return pollAt(now)
	}
	return now.Add(recheck - rand.N(recheck/4))
}

func pollAt(now time.Time) time.Time { return now.Add(pollLeast + rand.N(pollMost-pollLeast)) }
