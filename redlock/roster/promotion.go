package roster

import "time"

// A master that moves is whichever server a Sentinel names. When the server dies
// a replica is promoted, with the marker of the one before it, but perhaps
// without its last locks. What it lacks, its quarantine covers. But the one
// before may be alive where only some processes reach it: then two servers would
// vote for one member, and a quorum with the one need not meet a quorum with the
// other. So a promotion is a replacement: joined names the run of the server that
// the member is now, in a new epoch, and only once enough of the other masters
// have that on record is the promoted server given a marker of its own. From
// then on no process has a quorum with the server before without reading of the
// epoch, and the quarantine begins.

// isPromoted tells whether the server that answers at a place is
// the one whose run joined names: it was promoted, or joined as a newcomer.
func (r *Roster) isPromoted(p Place, s *sight) bool {
	return s.run != "" && joinedRun(r.joined[p.Master]) == ShortRun(s.run)
}

// awaitsPromotion tells whether nothing may be written to a place
// yet because the server there is not known to be its member, or not to enough
// others. It makes it known.
func (r *Roster) awaitsPromotion(p Place, s *sight, now time.Time, limits Limits) bool {
	if r.blank[p.Master] || s.run == "" {
		return false
	}
	own, moves := s.marker, r.moves(p.Master)
	forgot := s.text == ""
	switch {
	case !forgot && (own.Set != r.set || own.Members != r.masters || own.Member != p.Master+1):
		return false // whose it is, others judge
	case !forgot && own.Run == s.run:
		return false // the server of before, or one that was promoted and has its marker
	case r.isPromoted(p, s):
		return r.isUnheard(p.Master, now) && (moves || r.unheardFor(p.Master, now) < limits.MaxQuarantine)
	case !moves && r.taken(p, s) == theMember:
		return false
	case !moves && r.taken(p, s) == theReplaced:
		return true
	case forgot && (r.contested() || now.Sub(s.since) < missingPause):
		return true
	case !moves && now.Sub(s.since) < newcomerPause:
		return true
	}
	if !s.isRecent(now) {
		return true // it may be another run meanwhile, that others know
	}
	name, who := r.names(p.Master), "that Sentinels name"
	if !moves {
		name, who = joinedName(r.joined[p.Master]), "that this process has not met before"
	}
	r.join(p, s, name)
	r.warn("a lock master "+who+" is another server, or another run of it; the other masters are told before it may vote",
		"master", r.names(p.Master), "epoch", r.epoch)
	return true
}

// heardOf counts the other masters that have on record which
// server the member at a place is.
func (r *Roster) heardOf(master int) int {
	n := 0
	for i := range r.masters {
		s := r.sights[Place{i, 0}]
		if i != master && s != nil && s.present() && s.marker.Set == r.set && s.marker.Members == r.masters && s.marker.Joined[master] == r.joined[master] {
			n++
		}
	}
	return n
}

// promotionPause is how much longer than another the quarantine of a promoted
// server lasts: until every process that is not cut off from the other masters
// has read of the epoch, and its ballots of before have ended.
func promotionPause(limits Limits) time.Duration { return 2*BeatPause + limits.MasterTimeout }
