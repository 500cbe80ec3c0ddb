package roster

import (
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/timing"
)

// A ttlMemory remembers the longest TTL of records that this process cannot read any more,
// because a master has gone or forgotten. It counts as long as a lock can live that was granted
// before the loss.
type ttlMemory struct {
	longest time.Duration
	until   time.Time
}

// lose records that a record of the longest TTL is lost now.
func (t *ttlMemory) lose(longest time.Duration, now time.Time, limits Limits) {
	t.longest = max(t.granted(now), longest)
	// rule: a lost TTL is remembered by the slowest clock
	longest = limits.Apart(longest)
	if until := now.Add(longest + timing.TurnGrace); until.After(t.until) {
		t.until = until
	}
}

// granted returns the longest TTL of the lost records, or 0 if all their locks have ended.
func (t *ttlMemory) granted(now time.Time) time.Duration {
	if now.After(t.until) {
		return 0
	}
	return t.longest
}

// granted returns the longest TTL that an unended lock may have, as far as this process knows:
// from the records that it can read, and from the lost ones.
func (r *Roster) granted(now time.Time) time.Duration {
	longest := r.ttls.granted(now)
	for _, s := range r.views {
		if s.present() && s.marker.Set == r.set {
			longest = max(longest, s.marker.Granted())
		}
	}
	return longest
}

// isGuess tells whether a marker has the cap on record. Mostly its master forgot, and could not learn the longest TTL.
// Until the record turns, such a master does not tell what was granted.
func (r *Roster) isGuess(m marker.Marker) bool { return m.Before >= r.limits.MaxQuarantine }

// grantedBut is granted without what a master has on record now, and without guesses. It is the longest TTL if
// enough others tell.
func (r *Roster) grantedBut(master int, now time.Time) time.Duration {
	longest := r.ttls.granted(now)
	for p, s := range r.views {
		switch {
		case p.Master == master || !s.present() || s.marker.Set != r.set:
		case r.isGuess(s.marker):
			longest = max(longest, s.marker.Longest)
		default:
			longest = max(longest, s.marker.Granted())
		}
	}
	return longest
}

// leaves records that a place's marker cannot be read any more, or that another one has
// replaced it. If no set is known yet, it may be the marker of the set that a new one follows. A
// record that only turned is not lost. Nor is a record of another run: it was
// lost with that run, and the process that overwrites it keeps it.
func (r *Roster) leaves(s *view, next marker.Marker, now time.Time) {
	m := s.marker
	if s.present() && (m.Set == r.set || r.set == "") && m.Run == s.run && (next.DB != m.DB || next.Set != m.Set || next.Run != m.Run || next.Since != m.Since) {
		r.ttls.lose(m.Granted(), now, r.limits)
	}
}

// covers returns the longest TTL that a lock may have if it is granted at now, by the master's
// own time. A request for a longer one records it in Longest first. If that happened just
// before the record turned, its stream may not have read of the turn. So until timing.TurnGrace
// has passed, covers returns Granted.
func covers(m marker.Marker, now time.Duration) time.Duration {
	if past := now - time.Duration(m.Turned)*time.Millisecond; past >= 0 && past < timing.TurnGrace {
		return m.Granted()
	}
	return m.Longest
}
