package redlock

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"redlock-proxy/redlock/roster"
)

// voters owns the roster: it lets one goroutine at a time have it, tells the log
// and the Observer what came up once the roster is free, for a log that blocks, or
// an Observer that asks how the masters stand, must not hold up every vote, and
// publishes what each batch reads without a lock.
type voters struct {
	log      *slog.Logger
	standing func(roster.MasterStatus) // to the Observer
	wake     chan struct{}             // to the certifier: there is something to plan by

	version   atomic.Uint64 // the roster's
	witnessed atomic.Bool   // the roster's

	mu      sync.Mutex
	roster  *roster.Roster
	turned  chan struct{}   // closed when how a place stands has changed
	waiting []roster.Notice // to be told, in order
	telling bool            // some goroutine is telling them
}

func newVoters(r *roster.Roster, standing func(roster.MasterStatus), log *slog.Logger) *voters {
	return &voters{log: log, standing: standing, roster: r, wake: make(chan struct{}, 1), turned: make(chan struct{})}
}

// do lets use have the roster.
func (v *voters) do(use func(*roster.Roster)) {
	v.mu.Lock()
	defer v.unlock()
	use(v.roster)
}

// ask is do for what answers.
func ask[T any](v *voters, question func(*roster.Roster) T) (answer T) {
	v.do(func(r *roster.Roster) { answer = question(r) })
	return answer
}

// watch is do. What it returns is closed when how a place stands has changed since.
func (v *voters) watch(use func(*roster.Roster)) <-chan struct{} {
	v.mu.Lock()
	defer v.unlock()
	use(v.roster)
	return v.turned
}

// unlock publishes what use has changed, gives mu back, and tells what came up,
// unless another goroutine is telling already, which then goes on with it.
func (v *voters) unlock() {
	defer v.mu.Unlock()
	v.publish()
	if v.telling {
		return
	}
	v.telling = true
	defer func() { v.telling = false }()
	for len(v.waiting) > 0 {
		waiting := v.waiting
		v.waiting = nil
		v.tellFree(waiting)
	}
}

// publish takes, with mu held, the roster's news.
func (v *voters) publish() {
	news := v.roster.Drain()
	v.version.Store(news.Version)
	v.witnessed.Store(news.Witnessed)
	if news.Turned {
		close(v.turned)
		v.turned = make(chan struct{})
	}
	if news.Changed {
		select {
		case v.wake <- struct{}{}:
		default:
		}
	}
	v.waiting = append(v.waiting, news.Notices...)
}

// tellFree tells with mu free, and has it again afterwards, also when who is told
// panics.
func (v *voters) tellFree(waiting []roster.Notice) {
	v.mu.Unlock()
	defer v.mu.Lock()
	for _, n := range waiting {
		switch {
		case n.Standing != nil:
			v.standing(*n.Standing)
		case n.Grave:
			v.log.Error(n.Text, n.Fields...)
		default:
			v.log.Warn(n.Text, n.Fields...)
		}
	}
}
