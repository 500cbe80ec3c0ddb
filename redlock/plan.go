package redlock

import (
	"maps"
	"slices"
	"time"
)

// mark is one marker to be written: on a place, where the marker is still what
// it was seen to be.
type mark struct {
	place
	seen   string
	write  marker
	cause  Amnesia // zero: nothing to worry about
	reason string  // for the log, with a cause
}

const (
	// markAgain is how long an unanswered mark is waited for.
	markAgain = 500 * time.Millisecond
	// jumpPause is how long a jump waits at most to be written down, for the other
	// masters' clocks to be read: if all jumped together it was us. Until it is
	// written, a process that has just started does not know of it.
	jumpPause = 100 * time.Millisecond
	// firstUsePause is how long all masters are waited for when a database is
	// used for the first time.
	firstUsePause = 2 * time.Second
	// missingPause is how long a missing marker is left alone, for another
	// process may be about to begin a new set.
	missingPause = 300 * time.Millisecond
	// readPause is how long the markers of all masters are waited for, before those
	// that were read must do.
	readPause = beatPause
)

// plan decides which markers to write now. It is asked whenever something
// changed and once in a while.
func (r *roster) plan(now time.Time, limits Config) []mark {
	r.mu.Lock()
	defer r.unlock()
	r.settleJumps(now)
	r.adopt()
	var marks []mark
	if r.set == "" {
		marks = r.found(now, limits)
	} else {
		for _, db := range r.databases() {
			if r.firstUse(db) {
				r.listed[db] = true
				for i := range r.masters {
					r.blank[place{i, db}] = true
				}
			}
		}
		for _, db := range r.databases() {
			for i := range r.masters {
				if m, ok := r.mend(place{i, db}, now, limits); ok {
					marks = append(marks, m)
				}
			}
		}
	}
	r.showDatabases(now)
	r.tellNoSet(now)
	return slices.DeleteFunc(marks, func(m mark) bool {
		s := r.sights[m.place]
		again := now.Sub(s.actedAt) < markAgain
		if !again {
			s.actedAt = now
		}
		return again
	})
}

// mend is what has to be written to one place of a set that exists.
func (r *roster) mend(p place, now time.Time, limits Config) (mark, bool) {
	s := r.sights[p]
	if s == nil || !s.read || s.problem != "" || s.broken {
		return mark{}, false
	}
	if r.awaitsPromotion(p, s, now, limits) {
		return mark{}, false
	}
	m := mark{place: p, seen: s.text, write: r.marker(p, r.set, sinceNow)}
	promoted := r.isPromoted(p, s)
	switch own := s.marker; {
	case s.text == "":
		if r.blank[p] {
			r.begin(&m, limits)
			return m, p.db == 0 || r.onList(p.db) >= quorum(r.masters)
		}
		if r.contested() {
			return mark{}, false
		}
		if !r.marked[p.db] && !r.listed[p.db] && now.Sub(r.first[p.db]) < firstUsePause || now.Sub(s.since) < missingPause {
			return mark{}, false
		}
		m.cause, m.reason = Emptied, "its marker is missing: it was flushed, or restarted without its data"
	case p.db != 0 && own.set != r.set && own.members == r.masters && own.member == p.master+1 && r.belongs(p.master):
		m.cause, m.reason = Emptied, "it was flushed in database 0, where its set began anew"
	case own.set != r.set || own.members != r.masters || own.member != p.master+1 || own.joined[p.master] != r.joined[p.master] && !promoted:
		return mark{}, false
	case own.run != s.run:
		m.cause, m.reason = Restarted, "it has been restarted"
	case s.jump > 0:
		if now.Sub(s.jumpedAt) < jumpPause && !r.clocksRead(p, s.jumpedAt) {
			return mark{}, false
		}
		m.cause, m.reason = ClockJumped, "its clock has jumped forward by "+s.jump.Round(time.Millisecond).String()
	case s.ahead:
		// It forgets nothing by this, so there is nothing to learn from others.
		m.cause, m.reason = ClockJumped, "its clock was ahead and has been put right"
		m.write.longest = max(m.write.longest, own.longest)
		m.write.quarantine = max(own.quarantine, quarantine(limits.RestartDelay, m.write.longest, limits.MaxQuarantine))
		return m, true
	case own.epoch != r.epoch || !slices.Equal(own.joined, r.joined) || p.db == 0 && !slices.Equal(own.databases, m.write.databases):
		m.write.since, m.write.quarantine, m.write.longest = own.since, own.quarantine, own.longest
		return m, true
	default:
		return mark{}, false
	}
	m.write.longest = max(m.write.longest, s.marker.longest)
	covers, known := r.covers(p, m.cause, m.write.longest, now, limits)
	m.write.quarantine = covers
	if promoted {
		m.write.quarantine += promotionPause(limits)
	}
	return m, known
}

// covers is, with mu held, which quarantine covers what a place has forgotten.
// False: others are about to tell.
func (r *roster) covers(p place, cause Amnesia, longest time.Duration, now time.Time, limits Config) (time.Duration, bool) {
	told, enough := r.readSince(p), min(r.masters-1, r.tellAll())
	waited := now.Sub(r.sights[p].since)
	switch {
	case cause != ClockJumped && waited >= limits.MaxQuarantine:
		longest = 0 // whatever it forgot has ended while nothing could be written to it
	case told < r.masters-1 && waited < readPause && cause != ClockJumped:
		return 0, false
	case told < enough && waited < limits.RestartDelay:
		return 0, false // those that know may come back
	case told < enough || told < r.masters-1 && !r.recalls[p.db]:
		// One that is away may know of a longer TTL.
		longest = limits.MaxQuarantine
	}
	return quarantine(limits.RestartDelay, longest, limits.MaxQuarantine), true
}

// belongs tells whether a master's database 0 says that it is of this set.
func (r *roster) belongs(i int) bool {
	s := r.sights[place{i, 0}]
	return s != nil && s.present() && s.marker.set == r.set
}

// begin makes a marker that of a new set, which begins in quarantine, or that of
// a database which the set uses for the first time, where nothing can be
// forgotten.
func (r *roster) begin(m *mark, limits Config) {
	m.write.since = 0
	if m.db == 0 && !r.fresh {
		m.write.since = sinceNow
		m.write.quarantine = quarantine(limits.RestartDelay, m.write.longest, limits.MaxQuarantine)
	}
}

// onList counts the masters that have a database on their list.
func (r *roster) onList(db int) int {
	n := 0
	for i := range r.masters {
		if s := r.sights[place{i, 0}]; s != nil && s.present() && slices.Contains(s.marker.databases, db) {
			n++
		}
	}
	return n
}

// contested: another set is being founded on masters that have forgotten this
// one, so that nothing must be written between them.
func (r *roster) contested() bool {
	for p, s := range r.sights {
		m := s.marker
		if p.db == 0 && s.present() && m.set != r.set && m.members == r.masters && m.member == p.master+1 {
			return true
		}
	}
	return false
}

// tellAll is how many masters that remember know, together, of every TTL
// granted: a lock on a quorum has raised the longest TTL on a quorum.
func (r *roster) tellAll() int { return r.masters - quorum(r.masters) + 1 }

// readSince counts the other masters whose marker, or that there is none, was
// read since this one was seen to have forgotten.
func (r *roster) readSince(p place) int {
	n := 0
	for i := range r.masters {
		other := place{i, p.db}
		if s := r.sights[other]; i != p.master && s != nil && s.read && r.lastCheck(other).After(r.sights[p].since) {
			n++
		}
	}
	return n
}

// firstUse: the set uses a database for the first time, for no master has a
// marker there, and all of them remember database 0.
func (r *roster) firstUse(db int) bool {
	if db == 0 || r.marked[db] || r.listed[db] {
		return false
	}
	for i := range r.masters {
		s, zero := r.sights[place{i, db}], r.sights[place{i, 0}]
		if s == nil || !s.absent() || zero == nil || zero.told.state != Certified {
			return false
		}
	}
	return true
}

// marker is what a master of the set shall have.
func (r *roster) marker(p place, set string, since int64) marker {
	databases := []int{0}
	if p.db == 0 {
		databases = slices.Sorted(maps.Keys(r.listed))
		if !r.listed[0] {
			databases = slices.Insert(databases, 0, 0)
		}
	}
	return marker{
		databases: databases,
		set:       set, member: p.master + 1, members: r.masters, epoch: r.epoch, joined: r.joined,
		run: r.sights[p].run, since: since, longest: r.longest,
	}
}

// written hears that a mark was made. A jump is then written down.
func (r *roster) written(m mark) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sight(m.place); s.jump > 0 && m.write.since == sinceNow {
		s.jump = 0
		r.changed()
	}
}
