package queue

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config is how a Queue hears of locks that may be free.
type Config struct {
	// Available tells whether the masters announce changes of keys now.
	Available func() bool
	// Subscribe makes the Tracker, which calls changed with each changed key, nil for any
	// key. nil: the masters never announce changes.
	Subscribe func(changed func(key []byte)) Tracker
	// Closing is closed when nobody may wait any longer; nil: never.
	Closing <-chan struct{}
}

// A Tracker sets the keys whose changes are announced, in any database. It may call
// changed from Track, but not from Untrack.
type Tracker interface {
	// Track returns when changes of the keys are heard, or ctx has ended.
	Track(ctx context.Context, keys ...string)
	Untrack(keys ...string)
}

// A Request is an acquire that waits for its turn.
type Request struct {
	DB   int
	Keys [][]byte // its locks
	Wait time.Duration
	// Looks says that the client may hold the lock already, as with a re-entrant script.
	// Then the acquire makes one try at once, also behind others. It only waits while the
	// lock is handed over.
	Looks bool
}

// A Result is what a try came to.
type Result uint8

const (
	Granted   Result = iota // the client has the lock
	Refused                 // another client has it
	Undecided               // nobody knows, or the client gets neither
)

// An End says how a Request ended.
type End uint8

const (
	Answered End = iota // by its last try
	Unheard             // the time was over before its first try
	Gone                // its context ended before a try
)

const (
	// echo is how long after a grant its own notices come. Masters that tell later than
	// a quorum are reported after another 15 ms (package notify).
	echo = 25 * time.Millisecond
	// net is the longest time between two tries of a head that waits for notices.
	net = time.Second
	// pollLeast and pollMost bound that time if the masters announce no changes.
	pollLeast = 50 * time.Millisecond
	pollMost  = 100 * time.Millisecond
)

// A Queue has the lines of one process. Any goroutine may use it.
type Queue struct {
	available func() bool
	tracker   Tracker // nil: the masters never announce changes
	closing   <-chan struct{}
	places    atomic.Int64

	mu   sync.Mutex
	keys map[string]*key
}

// New makes a Queue without lines. It subscribes for as long as the process lives.
func New(c Config) *Queue {
	q := &Queue{available: c.Available, closing: c.Closing, keys: map[string]*key{}}
	if c.Subscribe != nil {
		q.tracker = c.Subscribe(q.changed)
	}
	return q
}

// Empty tells whether nobody waits or tries. It takes no lock.
func (q *Queue) Empty() bool { return q.places.Load() == 0 }

// Serve calls try each time that it is the request's turn, until a try is not refused or
// the time is over. It calls waits once if it does not return or try at once.
func (q *Queue) Serve(ctx context.Context, r Request, waits func(), try func() Result) End {
	p := q.join(&r)
	defer p.leave()
	until, waiting := time.Now().Add(r.Wait), false
	for {
		if !p.isReady() {
			if !waiting {
				waiting = true
				waits()
			}
			switch p.await(ctx, until) {
			case callGone:
				return Gone
			case callOver:
				if p.tried {
					return Answered
				}
				return Unheard
			}
		}
		result := try()
		if ctx.Err() != nil { // its lock may be given back
			result = Undecided
		}
		p.settle(result)
		if result != Refused {
			return Answered
		}
	}
}

// join takes a place at the end of the line of each key.
func (q *Queue) join(r *Request) *place {
	p := &place{queue: q, db: r.DB, wake: make(chan struct{}, 1), founds: true, looks: r.Looks}
	q.places.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, name := range r.Keys {
		if slices.Contains(p.names, string(name)) {
			continue
		}
		k := q.keys[string(name)]
		if k == nil {
			k = &key{lines: map[int]*line{}}
			q.keys[string(name)] = k
		}
		l := k.lines[r.DB]
		if l == nil {
			l = &line{due: time.Now()}
			k.lines[r.DB] = l
		}
		l.places = append(l.places, p)
		if r.Looks {
			l.lookers++
		}
		p.founds = p.founds && len(l.places) == 1
		p.names, p.keys, p.lines = append(p.names, string(name)), append(p.keys, k), append(p.lines, l)
	}
	return p
}

// Released tells that a request through this process may have freed a lock. The head of
// its line makes a try at once.
func (q *Queue) Released(db int, name []byte) {
	if q.Empty() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.keys[string(name)]; k != nil {
		if l := k.lines[db]; l != nil {
			l.dueAt(time.Now())
		}
	}
}

// changed is called with each key that the masters announce, nil for any key.
func (q *Queue) changed(name []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if name == nil {
		for _, k := range q.keys {
			k.changed()
		}
	} else if k := q.keys[string(name)]; k != nil {
		k.changed()
	}
}

// announces tells whether the masters announce changes now.
func (q *Queue) announces() bool { return q.tracker != nil && q.available() }

// netAt is when a head that tried now tries again without a reason.
func (q *Queue) netAt(now time.Time) time.Time {
	if !q.announces() {
		return now.Add(pollLeast + rand.N(pollMost-pollLeast))
	}
	return now.Add(net - rand.N(net/4))
}
