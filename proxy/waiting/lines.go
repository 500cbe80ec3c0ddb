package waiting

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Changes is how Lines hear of keys that have changed on the masters.
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

// A Kind is what the requests in a line wait for.
type Kind uint8

const (
	Lock     Kind = iota // all keys of the request, to create them at once
	Elements             // of a list under any of the keys
	Members              // of a sorted set under any of the keys
)

// A Request is a command that waits for its turn.
type Request struct {
	DB   int
	Keys [][]byte // none: no notice calls for a try, so the request asks now and then; it is made at once
	Kind Kind
	Wait time.Duration
	// AtOnce makes the first try at once, also behind others. It only waits while the head
	// of a line makes a try, or is about to.
	AtOnce bool
	// Closing is closed when the request may not wait any longer; nil: never.
	Closing <-chan struct{}
	// Waits is called once if Serve does not try or return at once; it may be nil.
	Waits func()
}

// A Result is what a try came to.
type Result uint8

const (
	Granted   Result = iota // the client has the lock, and the next in line waits for its release
	Refused                 // there is nothing for the client; it waits
	Again                   // nobody knows yet; the client asks again soon, in its turn or not
	Undecided               // the request ends, and there may be something for the next in line
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

// Lines are the lines of one process. Any goroutine may use them.
type Lines struct {
	available func() bool
	tracker   Tracker // nil: the masters never announce changes
	places    atomic.Int64

	mu   sync.Mutex
	keys map[string]*key
}

// New makes Lines in which nobody waits. It subscribes for as long as the process lives.
func New(c Changes) *Lines {
	all := &Lines{available: c.Available, keys: map[string]*key{}}
	if c.Subscribe != nil {
		all.tracker = c.Subscribe(all.changed)
	}
	return all
}

// Serve calls try each time that it is the request's turn, until a try ends the request, the time
// is over or the context has ended. It returns false if it made no try.
func (all *Lines) Serve(ctx context.Context, r Request, try func() Result) (tried bool) {
	p := all.join(&r)
	defer p.leave()
	for until := time.Now().Add(r.Wait); p.await(ctx, until); {
		result := try()
		if ctx.Err() != nil { // its lock may be given back
			result = Undecided
		}
		p.settle(result)
		if result == Granted || result == Undecided {
			break
		}
	}
	return p.tried
}

// join takes a place at the end of the line of each key.
func (all *Lines) join(r *Request) *place {
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
			k = &key{lines: map[lineID]*line{}}
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

// Released tells that a request through this process may have freed a lock. The head of
// its line makes a try at once.
func (all *Lines) Released(db int, name []byte) {
	if all.places.Load() == 0 {
		return
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if k := all.keys[string(name)]; k != nil {
		if l := k.lines[lineID{db, Lock}]; l != nil {
			l.dueAt(time.Now())
		}
	}
}

// changed is called with each key that the masters announce, nil for any key.
func (all *Lines) changed(name []byte) {
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
func (all *Lines) announces() bool { return all.tracker != nil && all.available() }

// recheckAt is when a head that tried now tries again without a reason.
func (all *Lines) recheckAt(now time.Time) time.Time {
	if !all.announces() {
		return pollAt(now)
	}
	return now.Add(recheck - rand.N(recheck/4))
}

func pollAt(now time.Time) time.Time { return now.Add(pollLeast + rand.N(pollMost-pollLeast)) }
