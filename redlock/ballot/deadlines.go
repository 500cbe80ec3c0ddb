package ballot

import (
	"sync"
	"time"

	"redlock-proxy/redlock/loop"
)

// A wait waits for a ballot's end. One ballot after the other uses it.
type wait struct {
	over chan ending // has room for both endings

	// Guarded by the mutex of deadlines.
	deadline       time.Time
	task           *loop.Task // waits; may be nil
	earlier, later *wait      // its neighbours in the ring; nil: it is not in it
}

// An ending says why a wait is over.
type ending uint8

const (
	closed  ending = iota // the ballot has its verdict
	overdue               // its deadline has come
)

// receive waits for an ending. A task parks meanwhile if it must not block.
func (w *wait) receive(task *loop.Task) ending {
	for task.Parks() {
		select {
		case e := <-w.over:
			return e
		default:
			task.Park()
		}
	}
	return <-w.over
}

// deadlines tells waits that their deadlines have come. Nearly all ballots are closed long
// before. So one timer serves all, and it is set again only when it fires.
type deadlines struct {
	loop  *loop.Loop
	mu    sync.Mutex
	ring  wait      // before the earliest wait and behind the latest one
	fires time.Time // zero: no timer is set
}

func newDeadlines(l *loop.Loop) *deadlines {
	d := &deadlines{loop: l}
	d.ring.earlier, d.ring.later = &d.ring, &d.ring
	return d
}

// add makes w get overdue at the deadline, unless remove comes first.
func (d *deadlines) add(w *wait, deadline time.Time, task *loop.Task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.ring.earlier
	for before != &d.ring && deadline.Before(before.deadline) { // only after a reload
		before = before.earlier
	}
	w.deadline, w.task, w.earlier, w.later = deadline, task, before, before.later
	w.earlier.later, w.later.earlier = w, w
	if d.fires.IsZero() || deadline.Before(d.fires) {
		d.set(deadline)
	}
}

// remove takes w out, after its ballot was closed. w can then be used again: nothing is left
// in its channel, and deadlines send nothing to it.
func (d *deadlines) remove(w *wait) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.earlier != nil {
		d.unlink(w)
		return
	}
	if len(w.over) > 0 { // it got overdue at the same moment
		<-w.over
	}
}

func (d *deadlines) unlink(w *wait) {
	w.earlier.later, w.later.earlier = w.later, w.earlier
	w.earlier, w.later = nil, nil
}

// set sets the timer, with mu held.
func (d *deadlines) set(at time.Time) {
	d.fires = at
	d.loop.After(time.Until(at), d.fire)
}

func (d *deadlines) fire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if now.Before(d.fires) {
		return // this timer was for a later time than one that was set after it
	}
	first := d.ring.later
	for ; first != &d.ring && !now.Before(first.deadline); first = d.ring.later {
		d.unlink(first)
		first.over <- overdue
		first.task.Unpark()
	}
	d.fires = time.Time{}
	if first != &d.ring {
		d.set(first.deadline)
	}
}
