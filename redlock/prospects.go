package redlock

import "time"

// Who can vote, and who may soon: a question that cannot be decided is not waited
// for.

// Prospects tells how many masters can vote in a database now, and how many will
// by the given time, as far as is known: fewer than a quorum means that nothing
// can be decided until then. Of a process that has just started and still watches
// the masters' clocks the first is 0, and the second tells whether that is all
// that is missing.
func (l *Locker) Prospects(db int, by time.Time) (now, then int) {
	certified, hopeful, _, _ := l.roster.prospects(db, by)
	at := time.Now()
	for i, m := range l.masters {
		if !m.stream(db).serves(at) {
			continue
		}
		if certified.has(i) {
			now++
		}
		if hopeful.has(i) {
			then++
		}
	}
	return now, then
}

// isHopeless: fewer than a quorum of masters can vote, and none of the others is
// about to within a ballot's time.
func (l *Locker) isHopeless(db int) bool {
	_, then := l.Prospects(db, time.Now().Add(l.settings().MasterTimeout))
	return then < quorum(len(l.masters))
}

// prospects are the masters certified in a database, and those that may be so by
// the given time; when one of them last stood otherwise than before; and what is
// closed when that may have changed.
func (r *roster) prospects(db int, by time.Time) (certified, hopeful masterSet, moved time.Time, turned <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.moved[db].IsZero() {
		r.moved[db] = time.Now()
	}
	for i := range r.masters {
		s := r.sights[place{i, db}]
		switch {
		case s == nil: // it is being dialled for the first time
			hopeful |= 1 << i
		case s.told.state == Certified:
			certified |= 1 << i
			hopeful |= 1 << i
		case s.told.mayVoteBy(by):
			hopeful |= 1 << i
		}
	}
	return certified, hopeful, r.moved[db], r.turned
}

// mayVoteBy: it is not known that it will not. Who is away may be there in a
// moment; a stream that has dialled in vain knows better.
func (st *standing) mayVoteBy(by time.Time) bool { return st.state != Barred && !st.until.After(by) }

// prepare waits, for no longer than a ballot may take, until a quorum of masters
// votes in a database that is used for the first time. It does not wait where
// nothing is about to change.
func (l *Locker) prepare(db int) {
	if db < len(l.prepared) && l.prepared[db].Load() {
		return
	}
	for _, m := range l.masters {
		m.stream(db)
	}
	timeout := l.settings().MasterTimeout
	patience := time.NewTimer(timeout)
	defer patience.Stop()
	for {
		certified, _, moved, turned := l.roster.prospects(db, time.Now())
		if certified.size() >= quorum(len(l.masters)) {
			if db < len(l.prepared) {
				l.prepared[db].Store(true)
			}
			return
		}
		left := time.Until(moved.Add(timeout))
		if left <= 0 || l.isHopeless(db) {
			return
		}
		still := time.NewTimer(left)
		select {
		case <-turned:
		case <-still.C:
		case <-patience.C:
			still.Stop()
			return
		}
		still.Stop()
	}
}
