package redlock

import (
	"fmt"
	"slices"
	"time"
)

// standing is whether the votes of one batch count, and why not.
type standing struct {
	state   MasterState
	reason  string
	until   time.Time     // Quarantined, or Uncertified while its clock is watched: until when, by our clock
	longest time.Duration // the longest TTL that a lock may have which has not ended
	covers  time.Duration // the longest TTL on record of what is granted now
}

const (
	// beatPause is how often a master is checked that is asked nothing else.
	beatPause = time.Second
	// beatLength is how often that is looked after.
	beatLength = beatPause / 4
	// watchPause is how long a process watches a master's clock before it counts
	// its votes. It cannot know of a jump before; another process that lives
	// does, and has written it down by then, jumpPatience later.
	watchPause = 3 * beatPause / 2
)

// A checkReading is what the check of one batch finds besides the marker.
type checkReading struct {
	clock     time.Duration // the master's own time, since 1970
	received  time.Time     // by our clock
	unsure    bool          // something of its replication is new, and what is not known yet
	suspended bool          // this machine was, before it answered
	jumped    bool          // its clock seems to have jumped forward
	watched   time.Duration // for how long its clock has been watched
	witnessed bool          // this process saw the set begin
}

// at is how a place stands at a reading, where st is how it does apart from the
// time, and m is its marker.
func (st standing) at(m marker, now checkReading, limits voteLimits) standing {
	st.covers = m.covers(now.clock)
	if st.state != Certified {
		return st
	}
	watch := watchPause + jumpPatience(limits)
	left := time.Duration(m.votesFrom())*time.Millisecond - now.clock
	switch {
	case left > 0:
		st.state, st.until = Quarantined, now.received.Add(left)
		st.reason = "it may have forgotten locks, and votes again when all of them have ended"
	case now.unsure:
		st.state, st.reason = Uncertified, "its replication has changed, and is being looked at"
	case now.suspended:
		st.state, st.reason = Uncertified, "this machine was suspended before it answered"
	case now.jumped:
		// The roster has found meanwhile that it was this process that stood still.
		st.state, st.reason = Uncertified, "its clock seems to have jumped forward"
	case !now.witnessed && now.watched < watch:
		st.state, st.reason = Uncertified, "its clock is being watched first"
		st.until = now.received.Add(watch - now.watched)
	}
	return st
}

// judge says how a place stands apart from the time.
func (r *roster) judge(p place, s *sight) standing {
	m := s.marker
	no := func(state MasterState, reason string, values ...any) standing {
		return standing{state: state, reason: fmt.Sprintf(reason, values...), longest: m.granted()}
	}
	number := p.master + 1
	switch {
	case s.problem != "":
		return no(Barred, "%s", s.problem)
	case s.replica:
		return no(Barred, isReplica)
	case r.eviction[p.master] != "":
		return no(Barred, "it may evict locks when its memory is full (maxmemory-policy %s); set noeviction", r.eviction[p.master])
	case r.evicted[p.master]:
		return no(Uncertified, "it may have evicted locks until its policy was changed")
	case s.broken:
		return no(Barred, "its key %s is no marker; delete it if no other program needs it", MarkerKey)
	case s.jump > 0:
		return no(Uncertified, "its clock has jumped forward by %s", s.jump.Round(time.Millisecond))
	case r.set == "":
		return no(Uncertified, "no set of masters is known yet")
	case s.text == "":
		return no(Uncertified, "its marker is missing%s", r.butFirst(p, s))
	case m.set != r.set:
		return no(Barred, "it belongs to another set of masters (%s, not %s)", m.set, r.set)
	case m.members != r.masters:
		return no(Barred, "it is one of %d masters of its set, and %d are configured", m.members, r.masters)
	case m.member != number:
		return no(Barred, "it is number %d of its set and configured as number %d: either two names lead to one server, or the list is in another order than in another proxy", m.member, number)
	case m.joined[p.master] != r.joined[p.master] && r.isPromoted(p, s):
		return no(Uncertified, "it is new in its place, and enough other masters must hear of that first")
	case m.joined[p.master] != r.joined[p.master]:
		return no(Barred, "it was replaced in epoch %d, so this list of masters is out of date", r.epoch)
	case m.run != s.run:
		return no(Uncertified, "it has been restarted")
	case m.epoch != r.epoch || !slices.Equal(m.joined, r.joined):
		return no(Uncertified, "it has not heard of epoch %d yet", r.epoch)
	case m.ofFirstVersion():
		return no(Uncertified, "its marker is of an earlier version of this program")
	case s.replaced(m.replid):
		return no(Uncertified, "it has been a replica of another server")
	case m.db != p.db:
		return no(Uncertified, "it holds what database %d held: SWAPDB was executed", m.db)
	}
	r.meet(p)
	return standing{state: Certified, longest: m.granted()}
}
