package redlock

import (
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/roster"
)

// Who can vote, and who may soon: a question that cannot be decided is not waited
// for.

// Prospects tells how many masters can vote in a database now, and how many will
// by the given time, as far as is known: fewer than a quorum means that nothing
// can be decided until then. Of a process that has just started and still watches
// the masters' clocks the first is 0, and the second tells whether that is all
// that is missing.
func (l *Locker) Prospects(db int, by time.Time) (now, then int) {
	p, served := l.prospects(db, by), l.serving(db)
	return (masterSet(p.Certified) & served).size(), (masterSet(p.Hopeful) & served).size()
}

// serving are the masters that are asked at all now.
func (l *Locker) serving(db int) (served masterSet) {
	now := time.Now()
	for i, m := range l.masters {
		if m.stream(db).Serves(now) {
			served |= 1 << i
		}
	}
	return served
}

// isHopeless: fewer than a quorum of masters can vote, the others are known, and
// none of them is about to within a ballot's time.
func (l *Locker) isHopeless(db int) bool {
	p := l.prospects(db, time.Now().Add(l.settings().MasterTimeout))
	served := l.serving(db)
	return masterSet(p.Arriving)&served == 0 && (masterSet(p.Hopeful)&served).size() < quorum.Size(len(l.masters))
}

func (l *Locker) prospects(db int, by time.Time) roster.Prospects {
	return ask(l.voters, func(r *roster.Roster) roster.Prospects { return r.Prospects(db, by, time.Now()) })
}

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
		var p roster.Prospects
		turned := l.voters.watch(func(r *roster.Roster) { p = r.Prospects(db, time.Now(), time.Now()) })
		if masterSet(p.Certified).size() >= quorum.Size(len(l.masters)) {
			if db < len(l.prepared) {
				l.prepared[db].Store(true)
			}
			return
		}
		left := time.Until(p.Moved.Add(timeout))
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
