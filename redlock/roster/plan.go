package roster

import (
	"slices"
	"strconv"
	"time"

	"redlock-proxy/redlock/quorum"
)

// A Write is what is to be written to a master's markers, by the stream of a place
// where the marker is still what it was seen to be.
type Write struct {
	Place
	Seen   string
	Marker Marker
	Kind   Kind
	Turn   bool          // markEdit: it also turns the record of the longest TTL
	Used   []int         // markUpgrade: databases that the set used; nil: that is not known
	jump   time.Duration // the jump of its clock that is written down with it
	Cause  Amnesia       // zero: nothing to worry about
	Reason string        // for the log, with a cause
}

// A Kind says what a mark does in which of the server's databases.
type Kind uint8

const (
	WriteHere    Kind = iota // writes the marker to this database
	WriteLacking             // also to those that have none of this set and run
	WriteAll                 // to all
	EditAll                  // says in all who the masters are, and nothing else
	UpgradeAll               // makes markers of today of those of the first version
)

const (
	// MarkAgain is how long an unanswered mark is waited for.
	MarkAgain = 500 * time.Millisecond
	// JumpPause is how long a jump waits at most to be written down, for the other
	// masters' clocks to be read: if all jumped together it was us. Until it is
	// written, a process that has just started does not know of it.
	JumpPause = 100 * time.Millisecond
	// missingPause is how long a missing marker is left alone, for another
	// process may be about to begin a new set.
	missingPause = 300 * time.Millisecond
	// readPause is how long the markers of all masters are waited for, before those
	// that were read must do.
	readPause = BeatPause
)

// Tick decides which markers to write now. It is asked whenever something
// changed and once in a while.
func (r *Roster) Tick(now time.Time, limits Limits) []Write {
	r.settleJumps(now)
	r.adopt(now)
	var marks []Write
	if r.set == "" {
		marks = r.found(now, limits)
	} else {
		for _, db := range r.Databases() {
			for i := range r.masters {
				if m, ok := r.mend(Place{i, db}, now, limits); ok {
					marks = append(marks, m)
				}
			}
		}
	}
	r.tellNoSet(now)
	r.tellNewSet(now)
	return slices.DeleteFunc(marks, func(m Write) bool {
		s := r.sights[m.Place]
		again := now.Sub(s.actedAt) < MarkAgain
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
func (r *Roster) mend(p Place, now time.Time, limits Limits) (Write, bool) {
	s := r.sights[p]
	if s == nil || !s.read || s.problem != "" || s.Replica || s.broken || r.eviction[p.Master] != "" {
		return Write{}, false
	}
	if p.DB != 0 && !r.remembers(p.Master, s.run) || p.DB == 0 && r.awaitsPromotion(p, s, now, limits) {
		return Write{}, false
	}
	m := Write{Place: p, Seen: s.text, Marker: r.marker(p, r.set, SinceNow, now)}
	promoted := p.DB == 0 && r.isPromoted(p, s)
	switch own := s.marker; {
	case s.text == "" && p.DB == 0 && r.blank[p.Master]:
		r.begin(&m, limits)
		return m, true
	case s.text == "" && p.DB == 0:
		if r.contested() || now.Sub(s.since) < missingPause {
			return Write{}, false
		}
		m.Kind, m.Cause, m.Reason = WriteLacking, Emptied, "its marker is missing: it was flushed, or restarted without its data"
	case s.text == "":
		m.Cause, m.Reason = Emptied, "the marker of this database is missing: it was flushed"
	case p.DB != 0 && own.Set != r.set && own.Members == r.masters && own.Member == p.Master+1:
		m.Cause, m.Reason = Emptied, "it was flushed in database 0, where its set began anew"
	case own.Set != r.set || own.Members != r.masters || own.Member != p.Master+1 || own.Joined[p.Master] != r.joined[p.Master] && !promoted:
		return Write{}, false
	case own.Run != s.run && p.DB != 0:
		m.Cause, m.Reason = Restarted, "this database has been restarted"
	case own.Run != s.run:
		m.Kind, m.Cause, m.Reason = WriteAll, Restarted, "it has been restarted"
	case own.OfFirstVersion():
		return r.upgrade(m, own)
	case s.Replaced(own.ReplID):
		if p.DB == 0 {
			m.Kind = WriteAll
		}
		m.Cause, m.Reason = Replaced, "it has been a replica of another server, so it may have loaded another's copy"
	case p.DB == 0 && r.evicted[p.Master]:
		m.Kind, m.Cause, m.Reason = WriteAll, Emptied, "it may have evicted locks while its maxmemory-policy allowed it"
	case own.DB != p.DB:
		m.Cause, m.Reason = Emptied, "it holds what database "+strconv.Itoa(own.DB)+" held: SWAPDB was executed"
	case s.jump > 0:
		if p.DB != 0 || now.Sub(s.jumpedAt) < JumpPause && !r.clocksRead(p, s.jumpedAt) {
			return Write{}, false
		}
		m.Kind, m.jump = WriteAll, s.jump
		m.Cause, m.Reason = ClockJumped, "its clock has jumped forward by "+s.jump.Round(time.Millisecond).String()
	case s.ahead:
		// It forgets nothing by this, so there is nothing to learn from others.
		if p.DB == 0 {
			m.Kind = WriteAll
		}
		m.Cause, m.Reason = ClockJumped, "its clock was ahead and has been put right"
		m.Marker.Before = max(m.Marker.Before, own.Granted())
		m.Marker.Quarantine = max(own.Quarantine, quarantine(limits.RestartDelay, m.Marker.Before, limits.MaxQuarantine))
		return m, true
	case own.Epoch != r.epoch || !slices.Equal(own.Joined, r.joined) || own.ReplID != s.ID:
		m.Kind = EditAll
		return m, p.DB == 0
	case p.DB == 0 && r.fresh && own.Since != 0 && r.isUnused(now):
		// A process that was not told so has begun the set.
		m.Kind, m.Marker.Since, m.Marker.Before = WriteAll, 0, max(m.Marker.Before, own.Granted())
		return m, true
	case own.Quarantine == limits.MaxQuarantine && r.tells(r.readSince(p, s.forgotAt().Add(limits.MasterTimeout))) && !promoted:
		// It was the longest, for others could not be reached that have told since.
		m.Marker.Before = max(m.Marker.Before, own.Granted())
		m.Marker.Since, m.Marker.Quarantine = own.Since, quarantine(limits.RestartDelay, m.Marker.Before, limits.MaxQuarantine)
		return m, m.Marker.Quarantine < own.Quarantine
	case p.DB == 0 && own.Granted() > limits.RestartDelay && now.Sub(s.turnedAt) >= own.turns(limits):
		m.Kind, m.Turn = EditAll, true
		return m, true
	default:
		return Write{}, false
	}
	m.Marker.Before = max(m.Marker.Before, s.marker.Granted())
	covers, known := r.covers(p, m.Cause, m.Marker.Before, now, limits)
	m.Marker.Quarantine = covers
	if promoted {
		m.Marker.Quarantine += promotionPause(limits)
	}
	return m, known
}

// covers is which quarantine covers what a place has forgotten.
// False: others are about to tell.
func (r *Roster) covers(p Place, cause Amnesia, longest time.Duration, now time.Time, limits Limits) (time.Duration, bool) {
	// A ballot that raises the longest TTL may have been under way when it forgot.
	forgot := r.sights[p].forgotAt()
	if heard := r.heardSince(p.Master); p.DB == 0 && r.isPromoted(p, r.sights[p]) && heard.After(forgot) {
		forgot = heard
	}
	told, enough := r.readSince(p, forgot.Add(limits.MasterTimeout)), min(r.masters-1, r.tellAll())
	waited, patience := now.Sub(forgot), limits.MasterTimeout+readPause
	if cause == ClockJumped { // of which others must know soon
		patience = jumpPatience(limits) + 2*BeatLength
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
func (r *Roster) tells(told int) bool {
	return told == r.masters-1 || told >= min(r.masters-1, r.tellAll()) && r.recalls
}

// jumpPatience is how long a jump waits to be written down for ballots that
// raise the longest TTL. Where they may take longer, the cap is written first, for
// a process that has just started watches no longer than this.
func jumpPatience(limits Limits) time.Duration { return min(limits.MasterTimeout, BeatPause/2) }

// remembers tells whether a master's database 0 says that this run of it is of
// this set.
func (r *Roster) remembers(master int, run string) bool {
	s := r.sights[Place{master, 0}]
	return s != nil && s.present() && s.marker.Set == r.set && s.run == run && s.marker.Run == run && !s.marker.OfFirstVersion()
}

// begin makes a marker that of a new set, which begins in quarantine. Whatever
// the databases have of another set is left over.
func (r *Roster) begin(m *Write, limits Limits) {
	m.Kind, m.Marker.Since = WriteAll, 0
	if !r.fresh {
		m.Marker.Since = SinceNow
		m.Marker.Quarantine = quarantine(limits.RestartDelay, m.Marker.Before, limits.MaxQuarantine)
	}
}

// upgrade makes markers of today of those of the first version. So many of these
// as every quorum has one of list all databases that the set used, which is kept
// for those that are upgraded last. Where some have been written anew before so many
// were read, it is not known.
func (r *Roster) upgrade(m Write, own Marker) (Write, bool) {
	m.Kind = UpgradeAll
	m.Marker.Since, m.Marker.Quarantine, m.Marker.Longest = own.Since, own.Quarantine, own.Longest
	m.Marker.Before = 0
	listing, anew := 0, false
	var used []int
	for i := range r.masters {
		s := r.sights[Place{i, 0}]
		if s == nil || !s.present() || s.marker.Set != r.set {
			continue
		}
		if !s.marker.OfFirstVersion() {
			anew = true
			continue
		}
		listing++
		used = append(used, s.marker.Databases...)
	}
	if listing >= r.tellAll() {
		r.used = usedDatabases{r.set, used}
	}
	if r.used.set == r.set {
		m.Used = r.used.databases
		return m, m.DB == 0
	}
	return m, m.DB == 0 && anew
}

// usedDatabases are those that a set of the first version used.
type usedDatabases struct {
	set       string
	databases []int
}

// contested: another set is being founded on masters that have forgotten this
// one, so that nothing must be written between them.
func (r *Roster) contested() bool {
	for p, s := range r.sights {
		m := s.marker
		if p.DB == 0 && s.present() && m.Set != r.set && m.Members == r.masters && m.Member == p.Master+1 {
			return true
		}
	}
	return false
}

// tellAll is how many masters that remember know, together, of every TTL
// granted: a lock on a quorum has raised the longest TTL on a quorum.
func (r *Roster) tellAll() int { return quorum.Intersecting(r.masters) }

// readSince counts the other masters whose marker, or that there is none, was
// asked for since.
func (r *Roster) readSince(p Place, since time.Time) int {
	n := 0
	for i := range r.masters {
		other := Place{i, 0} // where every TTL is on record
		if s := r.sights[other]; i != p.Master && s != nil && s.read && s.asked.After(since) {
			n++
		}
	}
	return n
}

// marker is what a master of the set shall have.
func (r *Roster) marker(p Place, set string, since int64, now time.Time) Marker {
	return Marker{
		DB: p.DB, Set: set, Member: p.Master + 1, Members: r.masters, Epoch: r.epoch, Joined: r.joined,
		Run: r.sights[p].run, ReplID: r.sights[p].ID, Since: since, Before: r.granted(now), Turned: since,
	}
}

// Wrote hears that a mark was made. The jump that it writes down is then no
// news any more, in any database, unless another came on top of it.
func (r *Roster) Wrote(m Write, now time.Time) {
	if m.jump > 0 {
		r.rewrites(m.Place, now)
	}
	for p, s := range r.sights {
		if p.Master == m.Master && m.jump > 0 && s.jump == m.jump {
			s.jump = 0
			r.changed()
		}
	}
}
