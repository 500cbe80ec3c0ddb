package roster

import "time"

// A Replication is what a server says of its part in replication.
type Replication struct {
	Replica bool
	ID      string // master_replid, shortened; empty: it does not say
	// Was tells that it has been a replica since it got its id. Without that a
	// server changes its id also when its first replica comes, and long after the
	// last has gone.
	Was bool
}

const IsReplica = "it is a replica of another server, and a lock master must stand alone"

// Replaced tells whether a server that was on record with a replication id may
// have loaded another's memory since.
func (r Replication) Replaced(recorded string) bool {
	return r.ID != recorded && r.Was
}

// Replicates hears what a server says of its replication on a place's connection.
func (r *Roster) Replicates(p Place, is Replication, now time.Time) {
	if s := r.sight(p); s.Replication != is {
		s.Replication, s.actedAt = is, time.Time{}
		s.since = now // it may have forgotten until now
		r.changed()
	}
}

// Evicts hears by which policy a master may delete locks; empty: by none.
func (r *Roster) Evicts(master int, policy string, now time.Time) {
	if r.eviction[master] == policy {
		return
	}
	if policy == "" {
		r.evicted[master] = true
		r.sight(Place{master, 0}).since = now // it may have forgotten until now
	}
	r.eviction[master] = policy
	r.changed()
}
