package master

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/roster"
)

// voters owns the roster and lets one goroutine at a time use it. It publishes what each
// batch reads without a lock. It calls the log and the Observer after it has released the
// roster. A log that blocks, or an Observer that asks for the state of the masters, must
// not hold up every vote.
type voters struct {
	log      *slog.Logger
	standing func(roster.MasterStatus)           // the Observer's method
	recount  func(r *roster.Roster, masters int) // takes over the number of masters; nil: not yet
	wake     chan struct{}                       // wakes certify: the roster has changed

	version   atomic.Uint64             // the roster's
	learned   atomic.Pointer[time.Time] // the roster's
	witnessed atomic.Bool               // the roster's
	unsettled atomic.Bool               // the roster's

	mu      sync.Mutex
	roster  *roster.Roster
	turned  chan struct{}   // closed when the state of a place has changed
	waiting []roster.Notice // notices for the log and the Observer, in order
	telling bool            // a goroutine is in tellFree
}

func newVoters(r *roster.Roster, standing func(roster.MasterStatus), log *slog.Logger) *voters {
	v := &voters{log: log, standing: standing, roster: r, wake: make(chan struct{}, 1), turned: make(chan struct{})}
	v.learned.Store(&time.Time{})
	return v
}

// do calls use with the roster.
func (v *voters) do(use func(*roster.Roster)) {
	v.mu.Lock()
	defer v.unlock()
	use(v.roster)
}

// step has the roster take over an event.
func (v *voters) step(e roster.Event, now time.Time) {
	v.do(func(r *roster.Roster) { r.Step(e, now) })
}

// ask is do for questions with an answer.
func ask[T any](v *voters, question func(*roster.Roster) T) (answer T) {
	v.do(func(r *roster.Roster) { answer = question(r) })
	return answer
}

// watch is do. The channel that it returns is closed when the state of a place changes.
func (v *voters) watch(use func(*roster.Roster)) <-chan struct{} {
	v.mu.Lock()
	defer v.unlock()
	use(v.roster)
	return v.turned
}

// unlock publishes the changes, releases mu, and hands out the notices. If another
// goroutine is handing out notices already, that one goes on with the new ones.
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

// publish takes over, with mu held, the roster's news.
func (v *voters) publish() {
	news := v.roster.Ready()
	if v.recount != nil {
		v.recount(v.roster, news.Masters)
	}
	if at := news.Learned; !at.Equal(*v.learned.Load()) {
		kept := at // only this one is allocated
		v.learned.Store(&kept)
	}
	v.version.Store(news.Version)
	v.witnessed.Store(news.Witnessed)
	v.unsettled.Store(news.Unsettled)
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

// tellFree hands out notices with mu released. It locks mu again afterwards, even if the
// log or the Observer panics.
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
