package roster

import "time"

// A Replication is what a server says about its part in replication.
type Replication struct {
	Replica bool
	ID      string // master_replid, shortened; empty if the server does not say
	// Was says that the server has been a replica since it got its id. A server also changes
	// its id when its first replica comes, and long after the last has gone. Then Was is false.
	Was bool
}

const IsReplica = "it is a replica of another server, and a lock master must stand alone"
const isSwapped = "it holds what another database held: SWAPDB was executed"

// Replaced tells whether a server may have loaded another server's memory since a marker
// recorded its replication id.
func (r Replication) Replaced(recorded string) bool {
	return r.ID != recorded && r.Was
}

// Replicates records what a server says about its replication on a place's connection.
func (r *Roster) Replicates(p Place, is Replication, now time.Time) {
	if s := r.view(p); s.Replication != is {
		s.Replication, s.actedAt = is, time.Time{}
		// rule: a replica for a moment has just forgotten
		s.since = now // it may have forgotten until now
		r.changed()
	}
}

// Evicts records the policy by which a master may delete locks, or "" if it deletes none.
func (r *Roster) Evicts(master int, policy string, now time.Time) {
	m := r.of(master)
	if m.eviction == policy {
		return
	}
	if policy == "" {
		m.evicted = true
		r.view(Place{master, 0}).since = now // it may have forgotten until now
	}
	m.eviction = policy
	r.changed()
}
