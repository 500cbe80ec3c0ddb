package redlock

import (
	"slices"
	"strconv"
	"time"
)

// mark is what is to be written to a master's markers, by the stream of a place
// where the marker is still what it was seen to be.
type mark struct {
	place
	seen   string
	write  marker
	kind   markKind
	turn   bool          // markEdit: it also turns the record of the longest TTL
	used   []int         // markUpgrade: databases that the set used; nil: that is not known
	jump   time.Duration // the jump of its clock that is written down with it
	cause  Amnesia       // zero: nothing to worry about
	reason string        // for the log, with a cause
}

// A markKind says what a mark does in which of the server's databases.
type markKind uint8

const (
	markHere    markKind = iota // writes the marker to this database
	markLacking                 // also to those that have none of this set and run
	markAll                     // to all
	markEdit                    // says in all who the masters are, and nothing else
	markUpgrade                 // makes markers of today of those of the first version
)

const (
	// markAgain is how long an unanswered mark is waited for.
	markAgain = 500 * time.Millisecond
	// jumpPause is how long a jump waits at most to be written down, for the other
	// masters' clocks to be read: if all jumped together it was us. Until it is
	// written, a process that has just started does not know of it.
	jumpPause = 100 * time.Millisecond
	// missingPause is how long a missing marker is left alone, for another
	// process may be about to begin a new set.
	missingPause = 300 * time.Millisecond
	// readPause is how long the markers of all masters are waited for, before those
	// that were read must do.
	readPause = beatPause
)

// plan decides which markers to write now. It is asked whenever something
// changed and once in a while.
func (r *roster) plan(now time.Time, limits voteLimits) []mark {
	r.settleJumps(now)
	r.adopt()
	var marks []mark
	if r.set == "" {
		marks = r.found(now, limits)
	} else {
		for _, db := range r.databases() {
			for i := range r.masters {
				if m, ok := r.mend(place{i, db}, now, limits); ok {
					marks = append(marks, m)
				}
			}
		}
	}
	r.tellNoSet(now)
	r.tellNewSet(now)
	return slices.DeleteFunc(marks, func(m mark) bool {
		s := r.sights[m.place]
		again := now.Sub(s.actedAt) < markAgain
		if !again {
			s.actedAt = now
		}
		return again
	})
}

// mend is what has to be written to one place of a set that exists. Whatever
// concerns the whole server is written by way of database 0, which all processes
// use, so that one of them does it once for all databases. Another database is
// mended only where that is in order.
func (r *roster) mend(p place, now time.Time, limits voteLimits) (mark, bool) {
	s := r.sights[p]
	if s == nil || !s.read || s.problem != "" || s.replica || s.broken || r.eviction[p.master] != "" {
		return mark{}, false
	}
	if p.db != 0 && !r.remembers(p.master, s.run) || p.db == 0 && r.awaitsPromotion(p, s, now, limits) {
		return mark{}, false
	}
	m := mark{place: p, seen: s.text, write: r.marker(p, r.set, sinceNow, now)}
	promoted := p.db == 0 && r.isPromoted(p, s)
	switch own := s.marker; {
	case s.text == "" && p.db == 0 && r.blank[p.master]:
		r.begin(&m, limits)
		return m, true
	case s.text == "" && p.db == 0:
		if r.contested() || now.Sub(s.since) < missingPause {
			return mark{}, false
		}
		m.kind, m.cause, m.reason = markLacking, Emptied, "its marker is missing: it was flushed, or restarted without its data"
	case s.text == "":
		m.cause, m.reason = Emptied, "the marker of this database is missing: it was flushed"
	case p.db != 0 && own.set != r.set && own.members == r.masters && own.member == p.master+1:
		m.cause, m.reason = Emptied, "it was flushed in database 0, where its set began anew"
	case own.set != r.set || own.members != r.masters || own.member != p.master+1 || own.joined[p.master] != r.joined[p.master] && !promoted:
		return mark{}, false
	case own.run != s.run && p.db != 0:
		m.cause, m.reason = Restarted, "this database has been restarted"
	case own.run != s.run:
		m.kind, m.cause, m.reason = markAll, Restarted, "it has been restarted"
	case own.ofFirstVersion():
		return r.upgrade(m, own)
	case s.replaced(own.replid):
		if p.db == 0 {
			m.kind = markAll
		}
		m.cause, m.reason = Replaced, "it has been a replica of another server, so it may have loaded another's copy"
	case p.db == 0 && r.evicted[p.master]:
		m.kind, m.cause, m.reason = markAll, Emptied, "it may have evicted locks while its maxmemory-policy allowed it"
	case own.db != p.db:
		m.cause, m.reason = Emptied, "it holds what database "+strconv.Itoa(own.db)+" held: SWAPDB was executed"
	case s.jump > 0:
		if p.db != 0 || now.Sub(s.jumpedAt) < jumpPause && !r.clocksRead(p, s.jumpedAt) {
			return mark{}, false
		}
		m.kind, m.jump = markAll, s.jump
		m.cause, m.reason = ClockJumped, "its clock has jumped forward by "+s.jump.Round(time.Millisecond).String()
	case s.ahead:
		// It forgets nothing by this, so there is nothing to learn from others.
		if p.db == 0 {
			m.kind = markAll
		}
		m.cause, m.reason = ClockJumped, "its clock was ahead and has been put right"
		m.write.before = max(m.write.before, own.granted())
		m.write.quarantine = max(own.quarantine, quarantine(limits.RestartDelay, m.write.before, limits.MaxQuarantine))
		return m, true
	case own.epoch != r.epoch || !slices.Equal(own.joined, r.joined) || own.replid != s.id:
		m.kind = markEdit
		return m, p.db == 0
	case p.db == 0 && r.fresh && own.since != 0 && r.isUnused(now):
		// A process that was not told so has begun the set.
		m.kind, m.write.since, m.write.before = markAll, 0, max(m.write.before, own.granted())
		return m, true
	case own.quarantine == limits.MaxQuarantine && r.tells(r.readSince(p, s.forgotAt().Add(limits.MasterTimeout))) && !promoted:
		// It was the longest, for others could not be reached that have told since.
		m.write.before = max(m.write.before, own.granted())
		m.write.since, m.write.quarantine = own.since, quarantine(limits.RestartDelay, m.write.before, limits.MaxQuarantine)
		return m, m.write.quarantine < own.quarantine
	case p.db == 0 && own.granted() > limits.RestartDelay && now.Sub(s.turnedAt) >= own.turns(limits):
		m.kind, m.turn = markEdit, true
		return m, true
	default:
		return mark{}, false
	}
	m.write.before = max(m.write.before, s.marker.granted())
	covers, known := r.covers(p, m.cause, m.write.before, now, limits)
	m.write.quarantine = covers
	if promoted {
		m.write.quarantine += promotionPause(limits)
	}
	return m, known
}

// covers is which quarantine covers what a place has forgotten.
// False: others are about to tell.
func (r *roster) covers(p place, cause Amnesia, longest time.Duration, now time.Time, limits voteLimits) (time.Duration, bool) {
	// A ballot that raises the longest TTL may have been under way when it forgot.
	forgot := r.sights[p].forgotAt()
	told, enough := r.readSince(p, forgot.Add(limits.MasterTimeout)), min(r.masters-1, r.tellAll())
	waited, patience := now.Sub(forgot), limits.MasterTimeout+readPause
	if cause == ClockJumped { // of which others must know soon
		patience = jumpPatience(limits) + 2*beatLength
	}
	switch {
	case cause != ClockJumped && waited >= limits.MaxQuarantine:
		longest = 0 // whatever it forgot has ended while nothing could be written to it
	case told < r.masters-1 && waited < patience:
		return 0, false
	case told < enough && waited < limits.RestartDelay && cause != ClockJumped:
		return 0, false // those that know may come back
	case !r.tells(told):
		longest = limits.MaxQuarantine
	}
	return quarantine(limits.RestartDelay, longest, limits.MaxQuarantine), true
}

// tells whether so many other masters know of every TTL that was
// granted. Where this process has not yet known them all, one that is away may
// know of a longer one.
func (r *roster) tells(told int) bool {
	return told == r.masters-1 || told >= min(r.masters-1, r.tellAll()) && r.recalls
}

// jumpPatience is how long a jump waits to be written down for ballots that
// raise the longest TTL. Where they may take longer, the cap is written first, for
// a process that has just started watches no longer than this.
func jumpPatience(limits voteLimits) time.Duration { return min(limits.MasterTimeout, beatPause/2) }

// remembers tells whether a master's database 0 says that this run of it is of
// this set.
func (r *roster) remembers(master int, run string) bool {
	s := r.sights[place{master, 0}]
	return s != nil && s.present() && s.marker.set == r.set && s.run == run && s.marker.run == run && !s.marker.ofFirstVersion()
}

// begin makes a marker that of a new set, which begins in quarantine. Whatever
// the databases have of another set is left over.
func (r *roster) begin(m *mark, limits voteLimits) {
	m.kind, m.write.since = markAll, 0
	if !r.fresh {
		m.write.since = sinceNow
		m.write.quarantine = quarantine(limits.RestartDelay, m.write.before, limits.MaxQuarantine)
	}
}

// upgrade makes markers of today of those of the first version, once so many
// masters were read that what they list are all databases that the set used.
func (r *roster) upgrade(m mark, own marker) (mark, bool) {
	m.kind = markUpgrade
	m.write.since, m.write.quarantine, m.write.longest = own.since, own.quarantine, own.longest
	m.write.before = 0
	read := 0
	for i := range r.masters {
		s := r.sights[place{i, 0}]
		if s == nil || !s.present() || s.marker.set != r.set {
			continue
		}
		read++
		m.used = append(m.used, s.marker.databases...)
		if !s.marker.ofFirstVersion() {
			m.used = nil
			return m, m.db == 0
		}
	}
	return m, m.db == 0 && read >= r.tellAll()
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
func (r *roster) tellAll() int { return r.masters - majority(r.masters) + 1 }

// readSince counts the other masters whose marker, or that there is none, was
// asked for since.
func (r *roster) readSince(p place, since time.Time) int {
	n := 0
	for i := range r.masters {
		other := place{i, 0} // where every TTL is on record
		if s := r.sights[other]; i != p.master && s != nil && s.read && s.asked.After(since) {
			n++
		}
	}
	return n
}

// marker is what a master of the set shall have.
func (r *roster) marker(p place, set string, since int64, now time.Time) marker {
	return marker{
		db: p.db, set: set, member: p.master + 1, members: r.masters, epoch: r.epoch, joined: r.joined,
		run: r.sights[p].run, replid: r.sights[p].id, since: since, before: r.granted(now), turned: since,
	}
}

// written hears that a mark was made. The jump that it writes down is then no
// news any more, in any database, unless another came on top of it.
func (r *roster) written(m mark) {
	for p, s := range r.sights {
		if p.master == m.master && m.jump > 0 && s.jump == m.jump {
			s.jump = 0
			r.changed()
		}
	}
}

// majority is the quorum of so many masters.
func majority(masters int) int { return masters/2 + 1 }
