package heal

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/mend"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// Settings say what is healed, and how fast. The zero Settings heal nothing.
type Settings struct {
	Every time.Duration // the pause between two passes; 0: nothing is healed
	Rate  int           // the most keys that a pass looks at in a second
	Most  int64         // the largest payload of a key that is healed, in bytes
	// Covers tells whether a key of a database is healed. Many goroutines may call it.
	Covers func(db int, key []byte) bool
	// Quiet is the time for which a quorum must have held a key before it is healed. 0: longer than
	// any ballot of any process.
	Quiet time.Duration
}

// An Observer hears what is healed. Its methods are called from one goroutine and must
// not block.
type Observer interface {
	// Healed is called for each copy that was written or not written.
	Healed(master string, did Deed)
	// HealPassed is called when a pass has ended. A complete pass healed all that it found
	// when it began.
	HealPassed(began time.Time, complete bool)
}

// A Deed is what became of one copy.
type Deed uint8

const (
	Written  Deed = iota // the master has the copy
	Refused              // the master could not take the copy, or had got another one first
	TooLarge             // the key is larger than Settings.Most
)

func (d Deed) String() string {
	return [...]string{"written", "refused", "too_large"}[d]
}

// A Healer writes to masters what they lack of the locks that a quorum holds. Any
// goroutine may call its methods.
type Healer struct {
	box      *ballot.Box
	mender   *mend.Mender
	observer Observer
	log      *slog.Logger
	ctx      context.Context // ends all healing
	running  sync.WaitGroup

	mu    sync.Mutex
	stop  context.CancelFunc // ends the present passes, if there are any
	ended <-chan struct{}    // closed when these have ended
}

// New makes a Healer that heals nothing until Set. When ctx ends, all healing ends soon.
// Then call Wait.
func New(ctx context.Context, box *ballot.Box, mender *mend.Mender, observer Observer, log *slog.Logger) *Healer {
	none := make(chan struct{})
	close(none)
	return &Healer{box: box, mender: mender, observer: observer, log: log, ctx: ctx, stop: func() {}, ended: none}
}

// Set makes settings the active ones. A pass that is under way looks at no more keys, and no
// other begins before it has ended. Set does not wait for that.
func (h *Healer) Set(s Settings) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stop()
	if s.Every <= 0 || h.box.Masters.At(0).Embedded() { // embedded masters end with this process
		return
	}
	ctx, stop := context.WithCancel(h.ctx)
	before, ended := h.ended, make(chan struct{})
	h.stop, h.ended = stop, ended
	tasks := h.box.Masters.Loop()
	tasks.Spawn(&h.running, func() {
		defer close(ended)
		tasks.Wait(loop.Forever, before)
		for ctx.Err() == nil {
			stream.Contained(h.log, func() { h.run(ctx, s) })
			tasks.Wait(settling, ctx.Done())
		}
	})
}

// Wait returns when all healing has ended, after the end of New's ctx.
func (h *Healer) Wait() {
	h.mu.Lock() // so that no Set begins a pass
	defer h.mu.Unlock()
	h.box.Masters.Loop().Join(&h.running)
}

// settling is the wait before a pass that a change of the masters' states causes. Mostly
// several states change together.
const settling = 500 * time.Millisecond

// again is the longest pause after a pass that was not complete.
const again = 10 * time.Second

// run makes a pass whenever a master has joined those that can be healed or that vote, and
// every Settings.Every.
func (h *Healer) run(ctx context.Context, s Settings) {
	tasks := h.box.Masters.Loop()
	due := h.jittered(s.Every)
	var fillable, voting quorum.Set
	for {
		turned := h.box.Masters.Turned()
		f, v := h.box.Masters.Fillable(0), h.box.Masters.Voting(0)
		if f&^fillable|v&^voting != 0 {
			due = time.Now().Add(min(settling, s.Every))
		}
		fillable, voting = f, v
		switch tasks.Wait(time.Until(due), ctx.Done(), turned) {
		case loop.Late:
			began := time.Now()
			p := &pass{Healer: h, Settings: s, ctx: ctx}
			complete := p.run()
			if ctx.Err() != nil {
				return
			}
			h.observer.HealPassed(began, complete)
			pause := s.Every
			if !complete {
				pause = min(pause, again)
			}
			due = h.jittered(pause)
		case 0:
			return
		}
	}
}

// jittered is about d from now. It keeps several processes from making their passes at the same time.
func (h *Healer) jittered(d time.Duration) time.Time {
	return time.Now().Add(d - h.box.Masters.Loop().Draw(d/4+1))
}

// quiet is the time between two looks.
func (p *pass) quiet() time.Duration {
	if p.Quiet > 0 {
		return p.Quiet
	}
	return p.mender.Quiet()
}

func (p *pass) bounds() bounds {
	return bounds{
		least: (2*p.quiet() + p.box.Masters.Limits().MasterTimeout).Milliseconds(),
		most:  p.Most,
	}
}

// A pass looks at all keys once. One goroutine uses it.
type pass struct {
	*Healer
	Settings
	ctx context.Context // ends with the settings

	gaps     map[lane.Key]gap // found, and not healed yet
	bytes    int64            // of their payloads
	partial  bool             // something could not be healed or looked at
	overSize map[lane.Key]bool
}
