package queue

import "time"

// A key has the lines of one name. Notices do not say in which database a key changed.
type key struct {
	lines    map[int]*line // by database
	tracked  bool          // Track was called
	informed bool          // Track has returned
}

// A line has the places of those that wait for one lock. It is never empty. All of it is
// guarded by the queue's mutex.
type line struct {
	places  []*place
	lookers int       // how many of places may try out of their turn
	busy    bool      // the head makes a try
	due     time.Time // when the head must make its next try; zero: when it is told
	net     time.Time // when it makes one all the same
	quiet   time.Time // until then a notice is an echo
}

func (k *key) changed() {
	now := time.Now()
	for _, l := range k.lines {
		l.dueAt(latest(now, l.quiet))
	}
}

// dueAt makes the head try at that time, if it would not try earlier.
func (l *line) dueAt(at time.Time) {
	if l.due.IsZero() || at.Before(l.due) {
		l.due = at
	}
	l.places[0].signal()
}

// handsOver tells whether the lock is about to go to the head, if it is free. A notice that
// came with the echoes of a grant may be that of a release.
func (l *line) handsOver() bool {
	return l.busy || !l.due.IsZero() && l.places[0].isFirst()
}

// settle ends a try of the head.
func (l *line) settle(result Result, now, net time.Time) {
	l.busy, l.net = false, net
	switch result {
	case Granted:
		l.settleEcho(now)
	case Undecided:
		l.due = now
	}
	l.signalLookers()
}

// signalLookers tells those that may try out of their turn that no hand-over is under way.
func (l *line) signalLookers() {
	if l.lookers == 0 {
		return
	}
	for _, p := range l.places {
		if p.looks {
			p.signal()
		}
	}
}

// settleEcho puts the next try off until the echoes of a grant are over.
func (l *line) settleEcho(now time.Time) {
	l.quiet = now.Add(echo)
	if !l.due.IsZero() {
		l.due = latest(l.due, l.quiet)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earliest returns the earliest of times. Zero times do not count.
func earliest(first time.Time, more ...time.Time) time.Time {
	for _, t := range more {
		if !t.IsZero() && t.Before(first) {
			first = t
		}
	}
	return first
}
