package members

// This file says by which steps the number of masters changes: one at a time, and always the last one.

// inFlux returns the places that are being added or removed, and those that do not count though a
// later one does.
func (l List) inFlux() (places []int) {
	masters := l.Counting()
	for i := range l {
		if step := l.Stage(i).Step; step != Present && (step != Absent || i < masters) {
			places = append(places, i)
		}
	}
	return places
}

// Changing returns the first place that is being added or removed, if there is one.
func (l List) Changing() (place int, is bool) {
	flux := l.inFlux()
	if len(flux) == 0 {
		return 0, false
	}
	return flux[0], true
}

// IsFrozen tells whether nobody counts votes, because the number of masters is about to change.
func (l List) IsFrozen() bool {
	masters := l.Counting()
	for i := range l {
		if at := l.Stage(i); at.Step == Entering || at.Step == Exiting || !at.counts() && i < masters {
			return true
		}
	}
	return false
}

// IsProposed tells whether nothing but the addition of the next place is proposed.
func (l List) IsProposed() bool {
	flux, i := l.inFlux(), l.Counting()
	return len(flux) == 1 && l.Stage(i).Step == Proposed && !l.isWithdrawn(i)
}

// isWithdrawn tells whether the addition of a place was withdrawn: another place has its round.
func (l List) isWithdrawn(i int) bool {
	for j := range l {
		if j != i && l.Stage(j).Round >= l.Stage(i).Round {
			return true
		}
	}
	return false
}

// Add proposes a server as one more master, in the place after the last one.
func (l List) Add(m Member) List {
	at := Stage{Round: 1}
	for i := range l {
		at.Round = max(at.Round, l.Stage(i).Round+1)
	}
	return l.put(l.Counting(), m.String(), at)
}

// Remove proposes to do without the last master.
func (l List) Remove() List {
	i := l.Counting() - 1
	return l.at(i, Stage{l.Stage(i).Round, Retiring})
}

// Withdraw takes back the addition of the next place. The first place is never removed, so this hides
// no removal that is decided elsewhere.
func (l List) Withdraw() List {
	return l.at(0, Stage{l.Stage(l.Counting()).Round, Present})
}

// A Decision is the next step of a change. It may be taken when a quorum has recorded exactly the record
// on which it is based.
type Decision struct {
	Place   int
	Members List // the record after it
	// Held says that the record must have been kept until every lock that was granted before has
	// ended. Before an addition is dropped, every process that is not cut off has also shown by
	// then that it took the addition a step further. Votes says that the server of the place must vote.
	Held, Votes bool
}

// Next returns the next step of a change. It returns false if the number of masters does not change.
func (l List) Next() (d Decision, ok bool) {
	flux, masters := l.inFlux(), l.Counting()
	if len(flux) == 0 {
		return Decision{}, false
	}
	i, last := flux[0], flux[len(flux)-1]
	at := l.Stage(i)
	next := Stage{at.Round, at.Step + 1}
	switch {
	case !at.counts() && i < masters: // a process has made an earlier decision known too late
		next = Stage{at.Round + 1, Present}
	case l.Stage(last).Step == Entering && at.Step != Exiting: // it may be decided elsewhere already
		i, next = last, Stage{l.Stage(last).Round, Present}
	case len(flux) > 1 && !l.Stage(last).counts(): // two changes at once: the addition is dropped
		i, next = last, Stage{l.Stage(last).Round, Absent}
		d.Held = !l.IsFrozen()
	case at.Step == Proposed && (l.isWithdrawn(i) || i != masters):
		next.Step = Absent
		d.Held = true
	case at.Step == Retiring && i != masters-1:
		next = Stage{at.Round + 1, Present}
	default:
		d.Held, d.Votes = at.Step == Proposed || at.Step == Retiring, at.Step == Proposed
	}
	d.Place, d.Members = i, l.at(i, next)
	return d, true
}
