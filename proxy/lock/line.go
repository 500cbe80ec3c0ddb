package lock

import "time"

// A key has the lines of one name. Notices do not say in which database a key changed.
type waitedKey struct {
	lines map[lineID]*line
	heard bool // Track has returned
}

// lineID tells the lines of one key apart.
type lineID struct {
	db   int
	kind waitKind
}

// A line has the places of those that wait for the same thing of one key. It is never empty. All
// of it is guarded by the mutex of lines.
type line struct {
	places  []*place
	busy    bool      // the head makes a try
	due     time.Time // when the head must make its next try; zero: when it is told
	recheck time.Time // when it makes one all the same
	quiet   time.Time // until then a notice is most likely that of a grant
}

func (k *waitedKey) changed() {
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

// handsOver tells whether the head is about to get what there is. A notice that came shortly
// after a grant may be that of a release.
func (l *line) handsOver() bool {
	return l.busy || !l.due.IsZero() && l.places[0].isFirst()
}

// settle ends a try of the head.
func (l *line) settle(result tryResult, now, recheck time.Time) {
	l.busy, l.recheck = false, recheck
	switch result {
	case tryGranted:
		l.settleGrant(now)
	case tryUndecided:
		l.due = now
	}
	l.signalOthers()
}

// settleGrant puts the next try off until the notices of a grant have come.
func (l *line) settleGrant(now time.Time) {
	l.quiet = now.Add(ownNotices)
	if !l.due.IsZero() {
		l.due = latest(l.due, l.quiet)
	}
}

// signalOthers tells those that may try out of their turn that the head makes no try.
func (l *line) signalOthers() {
	for _, p := range l.places {
		if !p.own.IsZero() {
			p.signal()
		}
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
