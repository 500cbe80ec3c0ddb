package redlock

import (
	"bytes"
	"time"
)

// Memory can be replaced without a restart: a master that is made a replica loads
// another server's copy, with the marker in it, and is made a master again. So
// what the server says of its replication is asked with every batch, and its
// replication id is on record in the marker.

// A replication is what a server says of its part in replication.
type replication struct {
	replica bool
	id      string // master_replid, shortened; empty: it does not say
	// was tells that it has been a replica since it got its id. Without that a
	// server changes its id also when its first replica comes, and long after the
	// last has gone.
	was bool
}

const isReplica = "it is a replica of another server, and a lock master must stand alone"

// readReplication reads INFO replication.
func readReplication(info []byte) replication {
	var r replication
	for line := range bytes.Lines(info) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		switch string(name) {
		case "role":
			r.replica = string(value) != "master"
		case "master_replid":
			r.id = shortRun(string(value))
		case "master_replid2":
			r.was = len(bytes.Trim(value, "0")) > 0
		}
	}
	return r
}

// replaced tells whether a server that was on record with a replication id may
// have loaded another's memory since.
func (r replication) replaced(recorded string) bool {
	return r.id != recorded && r.was
}

// replicates hears what a server says of its replication on a place's connection.
func (r *roster) replicates(p place, now replication) {
	if s := r.sight(p); s.replication != now {
		s.replication, s.actedAt = now, time.Time{}
		r.changed()
	}
}
