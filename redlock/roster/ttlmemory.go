package roster

import "time"

// A ttlMemory is what a process remembers of the longest TTL that was on record
// where it is not any more, for a master has gone away or forgotten. It counts for
// as long as a lock can live that was granted until then.
type ttlMemory struct {
	longest time.Duration
	until   time.Time
}

// lose hears that a record of the longest TTL is lost now.
func (t *ttlMemory) lose(longest time.Duration, now time.Time) {
	t.longest = max(t.granted(now), longest)
	if until := now.Add(longest + longest/50 + turnGrace); until.After(t.until) { // clocks may differ
		t.until = until
	}
}

// granted is the longest TTL of those that were lost.
func (t *ttlMemory) granted(now time.Time) time.Duration {
	if now.After(t.until) {
		return 0
	}
	return t.longest
}

// granted is the longest TTL that a lock may have which has not
// ended, to the knowledge of this process: that of the records that it can read,
// and of those that it could.
func (r *Roster) granted(now time.Time) time.Duration {
	longest := r.ttls.granted(now)
	for _, s := range r.sights {
		if s.present() && s.marker.Set == r.set {
			longest = max(longest, s.marker.Granted())
		}
	}
	return longest
}

// leaves hears that a place's marker cannot be read any more, or
// another one is in its place. A record that only turned is not lost.
func (r *Roster) leaves(s *sight, next Marker, now time.Time) {
	m := s.marker
	if s.present() && m.Set == r.set && (next.Set != m.Set || next.Run != m.Run || next.Since != m.Since) {
		r.ttls.lose(m.Granted(), now)
	}
}
