package roster

import (
	"slices"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/timing"
)

// A Write is a planned write to a master's markers. The stream of the place makes it if the
// place's marker is still Seen.
type Write struct {
	Place
	Seen   string
	Marker marker.Marker
	Kind   Kind
	Turn   bool          // EditAll: it also turns the record of the longest TTL
	jump   time.Duration // the jump of its clock that this writes down
	Cause  Amnesia       // zero if nothing was forgotten
	Reason string        // for the log, if there is a cause
}

// A Kind says what a write does, and in which databases of the server.
type Kind uint8

const (
	WriteHere    Kind = iota // writes the marker to this database only
	WriteLacking             // also to databases without a marker of this set and run
	WriteAll                 // writes the marker to all databases
	EditAll                  // in all markers, writes only who the masters are
)

const (
	// MarkAgain is how long to wait for the answer to a write before it is planned again.
	MarkAgain = timing.MarkAgain
	// readPause is how long to wait for the markers of all masters. After that, those that were
	// read must be enough.
	readPause = BeatPause
)

// Tick decides which markers to write now. The owner calls it after each change and now and then.
func (r *Roster) Tick(now time.Time, limits Limits) []Write {
	r.limits = limits
	r.unsettled = false
	for _, s := range r.views {
		r.lapse(s, now)
		r.unsettled = r.unsettled || s.told.State == Starting
	}
	r.settleJumps(now)
	r.adopt(now)
	var marks []Write
	if r.set == "" {
		marks = r.found(now)
	} else {
		for _, db := range r.dbs {
			for i := range r.joined {
				if m, ok := r.mend(Place{i, db}, now); ok {
					marks = append(marks, m)
				}
			}
		}
	}
	r.tellNoSet(now)
	r.tellNewSet(now)
	return slices.DeleteFunc(marks, func(m Write) bool {
		s := r.views[m.Place]
		again := now.Sub(s.actedAt) < MarkAgain
		if !again {
			s.actedAt = now
		}
		return again
	})
}

// mend returns what to write to one place of an existing set. An event of the whole server is
// written through database 0, which all processes use. So one process does it once for all
// databases. Another database is mended only if database 0 is in order.
func (r *Roster) mend(p Place, now time.Time) (Write, bool) {
	s := r.views[p]
	if s == nil || r.isOutrun() || !s.read || p.DB >= marker.Databases || !r.joined.Has(p.Master) || s.problem != "" || s.Replica || s.broken || r.of(p.Master).eviction != "" {
		return Write{}, false
	}
	if p.DB != 0 && !r.remembers(p.Master, s.run) || p.DB == 0 && r.joins(p, s, now) {
		return Write{}, false
	}
	m := Write{Place: p, Seen: s.text, Marker: r.marker(p, r.set,
		// rule: a master that forgot does not vote for a while
		marker.SinceNow, now)}
	if s.blank {
		r.begin(&m)
		return m, true
	}
	switch r.forgets(&m, s, now) {
	case unclear:
		return Write{}, false
	case kept:
		return r.correct(m, s, now)
	}
	m.Marker.Before = max(m.Marker.Before, s.marker.Granted())
	longest, known := r.covers(p, m.Cause, m.Marker.Before, now)
	// rule: a database that was flushed is not taken for a new one
	m.Marker.Quarantine = r.limits.Quarantine(longest)
	// rule: CapOnRecord: what was not learned is the cap, on record, too
	m.Marker.Before = max(m.Marker.Before, longest) // or the next one that forgets would learn less from this marker
	// rule: a master that forgot learns the last token
	m.Marker.Token = r.tokenLearned(p, m.Cause, s.forgotAt(), now)
	return m, known
}

// isOutrun tells whether a master had a marker of a later version last.
func (r *Roster) isOutrun() bool {
	for p := range r.outrun {
		if r.joined.Has(p.Master) {
			return true
		}
	}
	return false
}

// A memory says whether a place still knows the locks that it granted.
type memory uint8

const (
	unclear memory = iota // not for this process to say, or not yet
	kept                  // since the time in its marker, it has forgotten nothing
	lost                  // it may have forgotten all of them
)

// forgets tells whether a place may have forgotten locks. If so, it puts into m why, and which
// databases need a new marker.
func (r *Roster) forgets(m *Write, s *view, now time.Time) memory {
	p := m.Place
	joined := p.DB == 0 && r.hasJoined(p, s)
	switch own := s.marker; {
	case s.text == "" && p.DB == 0:
		if now.Sub(s.since) < r.limits.RestartDelay && r.contested(p) {
			return unclear
		}
		m.Kind, m.Cause, m.Reason = WriteAll, Emptied, "its marker is missing: it is new, was flushed, or restarted without its data"
		if !joined && now.Sub(s.since) >= r.limits.MaxQuarantine {
			m.Kind = WriteHere // other databases may have voted and been flushed since then
		} else if r.hasMet(p.Master) {
			m.Kind = WriteLacking // its other databases hold the member's data
		}
	case s.text == "":
		m.Cause, m.Reason = Emptied, "the marker of this database is missing: it was flushed"
	case p.DB != 0 && (own.Set != r.set || own.Joined.Who(p.Master) != r.joined.Who(p.Master)) && (own.Set != r.set || r.joined.Fits(own.Joined)) && own.Member == p.Master+1:
		m.Cause, m.Reason = Emptied, "it was flushed in database 0, where it joined anew"
	case own.Set != r.set || !r.joined.Fits(own.Joined) || own.Member != p.Master+1 || own.Joined.Who(p.Master) != r.joined.Who(p.Master) && !joined:
		return unclear
	case own.Run != s.run && p.DB != 0:
		m.Cause, m.Reason = Restarted, "this database has been restarted"
	case own.Run != s.run:
		// rule: a restart is on record in databases that nobody uses
		m.Kind, m.Cause, m.Reason = WriteAll, Restarted, "it has been restarted"
	case s.Replaced(own.ReplID):
		if p.DB == 0 {
			m.Kind = WriteAll
		}
		m.Cause, m.Reason = Replaced, "it has been a replica of another server, so it may have loaded another's copy"
	case p.DB == 0 && r.of(p.Master).evicted:
		m.Kind, m.Cause, m.Reason = WriteAll, Emptied, "it may have evicted locks while its maxmemory-policy allowed it"
	case own.DB != p.DB:
		m.Cause, m.Reason = Emptied, isSwapped
	case s.jump > 0:
		if p.DB != 0 {
			return unclear
		}
		// rule: a clock's jump concerns databases that nobody uses who sees it
		m.Kind, m.jump = WriteAll, s.jump
		m.Cause, m.Reason = ClockJumped, "its clock has jumped forward by "+s.jump.Round(time.Millisecond).String()
	default:
		return kept
	}
	return lost
}

// correct returns what to write to a place that has forgotten nothing.
func (r *Roster) correct(m Write, s *view, now time.Time) (Write, bool) {
	p := m.Place
	switch own := s.marker; {
	case s.ahead:
		// The master forgets nothing by this, so there is nothing to learn from others.
		if p.DB == 0 {
			m.Kind = WriteAll
		}
		m.Cause, m.Reason = ClockJumped, "its clock was ahead and has been put right"
		m.Marker.Quarantine = max(own.Quarantine, r.limits.Quarantine(m.Marker.Before))
		return m, true
	case !r.isUpToDate(own) || own.ReplID != s.ID:
		m.Kind = EditAll
		return m, p.DB == 0 || r.isUpToDate(r.views[Place{p.Master, 0}].marker) // database 0 may have been flushed and written anew meanwhile
	case p.DB == 0 && r.fresh && own.Since != 0 && r.isUnused(now):
		// The set was begun by a process that was not told that it is new.
		m.Kind, m.Marker.Since = WriteAll, 0
		return m, true
	case s.told.State == Quarantined && own.Quarantine == r.limits.MaxQuarantine && r.learnsLess(p, s, now):
		m.Marker.Since, m.Marker.Quarantine = own.Since, r.limits.Quarantine(r.grantedBut(p.Master, now))
		return m, true
	case own.Since != 0 && s.told.State == Quarantined && own.Quarantine < r.limits.Quarantine(s.lacks.granted(s.told.Until)):
		// The process that wrote it knew less.
		m.Marker.Since, m.Marker.Quarantine = own.Since, r.limits.Quarantine(s.lacks.longest)
		return m, true
	case p.DB == 0 && own.Granted() > r.limits.RestartDelay && now.Sub(s.turnedAt) >= r.limits.Turn(own.Before):
		m.Kind, m.Turn = EditAll, true
		return m, true
	}
	return Write{}, false
}

// learnsLess tells whether a quarantine is longer than what was forgotten. It was the cap, because too
// few others were read, and so many that remember have answered since. The record keeps the cap until it
// turns: a master that is mended meanwhile may have nobody else to learn from.
func (r *Roster) learnsLess(p Place, s *view, now time.Time) bool {
	since := s.forgotAt().Add(r.limits.MasterTimeout)
	// rule: LongestTTLFromEnough: a master that had to guess itself does not tell
	told := r.count(func(i int, v *view) bool {
		return i != p.Master && r.remembers(i, v.run) && v.asked.After(since) && !r.isGuess(v.marker)
	})
	// rule: NewServerQuarantined: one that joined waits as long, also if it restarts or another joins after it
	isYoung := r.member(p.Master).Epoch > 1 && now.Before(r.nextChange())
	return !isYoung && r.tells(told) && r.limits.Quarantine(r.grantedBut(p.Master, now)) < s.marker.Quarantine
}

// covers returns the longest TTL of what a place may have forgotten. It returns false if
// others are about to say more.
func (r *Roster) covers(p Place, cause Amnesia, longest time.Duration, now time.Time) (time.Duration, bool) {
	s := r.views[p]
	if r.isNew(p, s) {
		// rule: NewServerQuarantined: a new server waits for MaxQuarantine
		longest = r.limits.MaxQuarantine
		return longest, true
	}
	forgot := s.forgotAt()
	since := forgot
	// A ballot that raises the longest TTL may have been under way when it forgot.
	// rule: a longer TTL that may be about to be granted is waited for
	since = since.Add(r.limits.MasterTimeout)
	told, enough := r.readSince(p, since), r.othersThatTell()
	waited, patience := now.Sub(forgot), r.limits.MasterTimeout+readPause
	if cause == ClockJumped {
		// Meanwhile the other masters' clocks are read, too. If all jumped together, this process stood
		// still. But a process that has just started must know of the jump soon.
		patience = r.limits.JumpPatience() + 2*BeatLength
	}
	switch {
	case cause != ClockJumped && waited >= r.limits.MaxQuarantine:
		longest = 0 // everything it forgot has ended while it could not be written to
	case told < r.masters-1 && waited < patience:
		return 0, false
	case told < enough && waited < r.limits.RestartDelay && cause != ClockJumped:
		return 0, false // masters that know may come back
	case !r.tells(told):
		longest = r.limits.MaxQuarantine
	}
	return longest, true
}

// tells tells whether that many other masters know every TTL that was granted. It is false
// until this process has once read enough records together. Until then an unreachable master
// may know of a longer TTL, or a master that has forgotten may have known of one.
func (r *Roster) tells(told int) bool { return told >= r.othersThatTell() && r.recalls }

// remembers tells whether a master's database 0 says four things: its marker is its own, this run
// of it belongs to this set, it is at its place, and it is still the member there.
func (r *Roster) remembers(master int, run string) bool {
	s := r.views[Place{master, 0}]
	return s != nil && s.present() && s.marker.DB == 0 && s.marker.Set == r.set && s.marker.Joined.Who(master) == r.joined.Who(master) && s.run == run && s.marker.Run == run
}

// isUpToDate tells whether a marker says who the masters are, as far as this process knows.
func (r *Roster) isUpToDate(m marker.Marker) bool {
	return m.Epoch == r.epoch && slices.Equal(m.Joined, r.joined)
}

// begin turns a marker into that of a new set, which begins in quarantine. Markers of another
// set in the databases are left over, and are overwritten.
func (r *Roster) begin(m *Write) {
	m.Kind, m.Marker.Since = WriteAll, 0
	if !r.fresh {
		m.Marker.Since = marker.SinceNow
		m.Marker.Quarantine = r.limits.Quarantine(m.Marker.Before)
	}
}

// contested tells whether a missing marker must not be written yet, because another set may be about to begin
// on masters that have forgotten this one. One of them has its marker already, or none has any: then the first
// master decides between the sets, so it gets a marker before all others, as in found. After RestartDelay it is
// no founding, but a marker from an old copy, or a first master that cannot be written to.
func (r *Roster) contested(p Place) bool {
	forgotten := p.Master > 0
	for q, s := range r.views {
		m := s.marker
		switch {
		case q.DB != 0 || !s.present():
		case m.Set == r.set:
			forgotten = false
		case (m.Members == r.masters || m.Members == len(r.servers)) && !m.Joined.IsResized() && m.Member == q.Master+1:
			return true
		}
	}
	return forgotten
}

// tellAll returns the number of remembering masters that together know every TTL granted. A
// lock on a quorum has raised the longest TTL on a quorum. The lock may be from before the last master was removed.
func (r *Roster) tellAll() int {
	// rule: EarlierListTells: the masters that tell are in each quorum of one master more, too
	more := 1
	return quorum.Intersecting(r.masters + more)
}

// othersThatTell is tellAll without the master in question.
func (r *Roster) othersThatTell() int { return min(r.masters-1, r.tellAll()) }

// readSince counts the other masters whose marker, or lack of one, was read after since. A server without a marker that
// this process has not met as the member may be new, and tells nothing.
func (r *Roster) readSince(p Place, since time.Time) int {
	return r.count(func(i int, s *view) bool { // database 0 records every TTL
		return i != p.Master && s.tellsAfter(since) && (s.present() || r.hasMet(i))
	})
}

// marker returns the marker that a master of the set shall have.
func (r *Roster) marker(p Place, set string, since int64, now time.Time) marker.Marker {
	return marker.Marker{
		DB: p.DB, Set: set, Member: p.Master + 1, Members: len(r.joined), Epoch: r.epoch, Joined: r.joined,
		Run: r.views[p].run, ReplID: r.views[p].ID, Since: since, Before: r.granted(now), Turned: since, Token: r.token,
	}
}
