package roster

import (
	"fmt"
	"slices"
	"time"
)

// A Standing is whether the votes of one batch count, and why not.
type Standing struct {
	State   State
	Reason  string
	Until   time.Time     // Quarantined, or Uncertified while its clock is watched: until when, by our clock
	Longest time.Duration // the longest TTL that a lock may have which has not ended
	learned time.Time     // when who the masters are has changed last, to our knowledge
	Covers  time.Duration // the longest TTL on record of what is granted now
}

const (
	// BeatPause is how often a master is checked that is asked nothing else.
	BeatPause = time.Second
	// BeatLength is how often that is looked after.
	BeatLength = BeatPause / 4
	// watchPause is how long a process watches a master's clock before it counts
	// its votes. It cannot know of a jump before; another process that lives
	// does, and has written it down by then, jumpPatience later.
	watchPause = 3 * BeatPause / 2
)

// A Reading is what the check of one batch finds besides the marker.
type Reading struct {
	Clock     time.Duration // the master's own time, since 1970
	Received  time.Time     // by our clock
	Unsure    bool          // something of its replication is new, and what is not known yet
	Suspended bool          // this machine was, before it answered
	Jumped    bool          // its clock seems to have jumped forward
	Watched   time.Duration // for how long its clock has been watched
	Witnessed bool          // this process saw the set begin
}

// At is how a place stands at a reading, where st is how it does apart from the
// time, and m is its marker.
func (st Standing) At(m Marker, now Reading, limits Limits) Standing {
	st.Covers = m.covers(now.Clock)
	if st.State != Certified {
		return st
	}
	watch := watchPause + jumpPatience(limits)
	left := time.Duration(m.VotesFrom())*time.Millisecond - now.Clock
	switch {
	case left > 0:
		st.State, st.Until = Quarantined, now.Received.Add(left)
		st.Reason = "it may have forgotten locks, and votes again when all of them have ended"
	case now.Unsure:
		st.State, st.Reason = Uncertified, "its replication has changed, and is being looked at"
	case now.Received.Sub(st.learned) < limits.MasterTimeout:
		// A ballot may have counted a master that was replaced in it.
		st.State, st.Reason = Uncertified, "who the masters are has just changed"
	case now.Suspended:
		st.State, st.Reason = Uncertified, "this machine was suspended before it answered"
	case now.Jumped:
		// The roster has found meanwhile that it was this process that stood still.
		st.State, st.Reason = Uncertified, "its clock seems to have jumped forward"
	case !now.Witnessed && now.Watched < watch:
		st.State, st.Reason = Uncertified, "its clock is being watched first"
		st.Until = now.Received.Add(watch - now.Watched)
	}
	return st
}

// judge says how a place stands apart from the time.
func (r *Roster) judge(p Place, s *sight) Standing {
	m := s.marker
	no := func(state State, reason string, values ...any) Standing {
		return Standing{State: state, Reason: fmt.Sprintf(reason, values...), Longest: m.Granted()}
	}
	number := p.Master + 1
	switch {
	case s.problem != "":
		return no(Barred, "%s", s.problem)
	case s.Replica:
		return no(Barred, IsReplica)
	case r.eviction[p.Master] != "":
		return no(Barred, "it may evict locks when its memory is full (maxmemory-policy %s); set noeviction", r.eviction[p.Master])
	case r.evicted[p.Master]:
		return no(Uncertified, "it may have evicted locks until its policy was changed")
	case s.isStale():
		return no(Uncertified, "its marker has just been written anew")
	case s.broken:
		return no(Barred, "its key %s is no marker; delete it if no other program needs it", MarkerKey)
	case s.jump > 0:
		return no(Uncertified, "its clock has jumped forward by %s", s.jump.Round(time.Millisecond))
	case r.set == "":
		return no(Uncertified, "no set of masters is known yet")
	case s.text == "":
		return no(Uncertified, "its marker is missing%s", r.butFirst(p, s))
	case m.Set != r.set:
		return no(Barred, "it belongs to another set of masters (%s, not %s)", m.Set, r.set)
	case m.Members != r.masters:
		return no(Barred, "it is one of %d masters of its set, and %d are configured", m.Members, r.masters)
	case m.Member != number:
		return no(Barred, "it is number %d of its set and configured as number %d: either two names lead to one server, or the list is in another order than in another proxy", m.Member, number)
	case m.Joined[p.Master] != r.joined[p.Master] && r.isPromoted(p, s):
		return no(Uncertified, "it is new in its place, and enough other masters must hear of that first")
	case m.Joined[p.Master] != r.joined[p.Master]:
		return no(Barred, "it was replaced in epoch %d, so this list of masters is out of date", r.epoch)
	case m.Run != s.run:
		return no(Uncertified, "it has been restarted")
	case m.Epoch != r.epoch || !slices.Equal(m.Joined, r.joined):
		return no(Uncertified, "it has not heard of epoch %d yet", r.epoch)
	case m.OfFirstVersion():
		return no(Uncertified, "its marker is of an earlier version of this program")
	case s.Replaced(m.ReplID):
		return no(Uncertified, "it has been a replica of another server")
	case m.DB != p.DB:
		return no(Uncertified, "it holds what database %d held: SWAPDB was executed", m.DB)
	}
	r.meet(p)
	return Standing{State: Certified, Longest: m.Granted(), learned: r.learned}
}
