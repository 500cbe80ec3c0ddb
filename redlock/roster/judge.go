package roster

import (
	"fmt"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/timing"
)

// A Standing says whether the votes of one batch count, and why not.
type Standing struct {
	State   State
	Reason  string
	Until   time.Time     // the end, by our clock; Quarantined, or Starting while its clock is watched
	Longest time.Duration // the longest TTL that an unended lock may have
	learned time.Time     // when this process last learned of other members
	Covers  time.Duration // a lock granted now must not have a longer TTL than this
	// Masters is the number of masters by the record that this judgement is about. The vote counts
	// only in a ballot that began with this number.
	Masters int
}

const (
	// BeatPause is the time between two checks of an idle master.
	BeatPause = timing.BeatPause
	// BeatLength is the time between two looks for idle masters.
	BeatLength = BeatPause / 4
)

// A Reading is what the check of one batch finds besides the marker.
type Reading struct {
	Clock     time.Duration // the master's own time, since 1970
	Received  time.Time     // when the answer arrived, by our clock
	Unsure    bool          // its replication has changed, and INFO has not explained it yet
	Suspended bool          // this machine was suspended before the master answered
	Jumped    bool          // its clock seems to have jumped forward
	Watched   time.Duration // how long its clock has been watched
	Witnessed bool          // this process saw the set begin
}

// At returns the standing of a place at a reading. st is its standing apart from the time, and
// m is its marker.
func (st Standing) At(m marker.Marker, now Reading, limits Limits) Standing {
	st.Covers = covers(m, now.Clock)
	if st.State != Voting {
		return st
	}
	watch := limits.Watch()
	left := time.Duration(m.VotesFrom())*time.Millisecond - now.Clock
	switch {
	case left > 0:
		st.State, st.Until = Quarantined, now.Received.Add(left)
		st.Reason = "it may have forgotten locks, and votes again when all of them have ended"
	case now.Unsure:
		st.State, st.Reason = Starting, "its replication has changed, and is being looked at"
	case now.Received.Sub(st.learned) < limits.MasterTimeout:
		// A running ballot may have counted a replaced master.
		st.State, st.Reason = Starting, "the record of the masters has just changed"
	case now.Suspended:
		st.State, st.Reason = Starting, "this machine was suspended before it answered"
	case now.Jumped:
		// The roster has found meanwhile that this process stood still.
		st.State, st.Reason = Starting, "its clock seems to have jumped forward"
	case !now.Witnessed && now.Watched < watch:
		st.State, st.Reason = Starting, "its clock is being watched first"
		st.Until = now.Received.Add(watch - now.Watched)
	}
	return st
}

// Judge returns the standing of a place apart from the time, and its marker.
func (r *Roster) Judge(p Place) (Standing, marker.Marker) {
	s := r.view(p)
	return r.judge(p, s), s.marker
}

// judge returns the standing of a place apart from the time.
func (r *Roster) judge(p Place, s *view) Standing {
	m := s.marker
	no := func(state State, reason string, values ...any) Standing {
		return Standing{State: state, Reason: fmt.Sprintf(reason, values...), Longest: m.Granted(), Masters: r.masters}
	}
	number := p.Master + 1
	switch {
	case p.DB >= marker.Databases:
		return no(Rejected, "only databases 0 to %d can hold locks", marker.Databases-1)
	case s.problem != "":
		return no(Rejected, "%s", s.problem)
	case s.Replica:
		return no(Rejected, IsReplica)
	case r.of(p.Master).eviction != "":
		return no(Rejected, "it may evict locks when its memory is full (maxmemory-policy %s); set noeviction", r.of(p.Master).eviction)
	case r.of(p.Master).evicted:
		return no(Starting, "it may have evicted locks until its policy was changed")
	case s.isStale():
		return no(Starting, "its marker has just been written anew")
	case s.broken:
		return no(Rejected, "%s", marker.Unreadable(s.text))
	case r.set == "":
		return no(Starting, "no set of masters is known yet")
	case !r.joined.Has(p.Master):
		return no(Starting, "it is not one of the %d masters on record: a reload that adds it makes it one, and a list that was not changed does not", r.masters)
	case r.isOutrun() && m.Run != s.run:
		return no(Starting, "it has no marker of its present run, and a later version of this program has taken over the masters: update this proxy")
	case s.text == "":
		return no(Starting, "its marker is missing%s", r.butFirst(p, s))
	case m.Set != r.set:
		return no(Rejected, "it belongs to another set of masters (%s, not %s)", m.Set, r.set)
	case !r.joined.Fits(m.Joined):
		return no(Rejected, "its set has %d masters by its marker, and %d by the list or by other markers; only a reload changes their number", m.Members, len(r.joined))
	case m.Member != number:
		return no(Rejected, "it is number %d of its set and configured as number %d: either two names lead to one server, or the list is in another order than in another proxy", m.Member, number)
	case s.jump > 0:
		return no(Starting, "its clock has jumped forward by %s", s.jump.Round(time.Millisecond))
	case m.Joined.Who(p.Master) != r.joined.Who(p.Master) && r.hasJoined(p, s):
		return no(Starting, "%s", r.whileJoining(p.Master))
	case m.Joined.Who(p.Master) != r.joined.Who(p.Master):
		return no(Rejected, "it was replaced in epoch %d, so this list of masters is out of date; reload with the present one", r.epoch)
	case m.Run != s.run:
		return no(Starting, "it has been restarted%s", r.butFirst(p, s))
	case !r.isUpToDate(m):
		return no(Starting, "it has not heard of epoch %d yet", r.epoch)
	case s.Replaced(m.ReplID):
		return no(Starting, "it has been a replica of another server")
	case m.DB != p.DB:
		return no(Starting, isSwapped)
	}
	return Standing{State: Voting, Longest: m.Granted(), learned: r.learned, Masters: r.masters}
}
