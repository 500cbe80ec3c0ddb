package redlock

import (
	"bytes"
	"time"

	"redlock-proxy/redlock/roster"
)

// Memory can be replaced without a restart: a master that is made a replica loads
// another server's copy, with the marker in it, and is made a master again. So
// what the server says of its replication is asked with every batch, and its
// replication id is on record in the marker.
//
// INFO replication tells the id, and costs the server ten times what ROLE does.
// ROLE tells the part, the replication offset and the replicas. The offset is 0 as
// long as nothing was replicated, and a server that was a replica adds to it
// whatever it writes. So where a batch ends with the answer "master, 0, none", no
// vote of this batch was granted by memory that has been replaced.
// The offset tells no more than that: it stays 0 where the other server's was 0,
// until something is written. A read could meet the other server's copy then, so
// INFO is asked every infoPause nevertheless. Where ROLE answers anything else, as
// on a server that had a replica, or on one that counts what it writes to its AOF
// (Valkey, and Redis since 7.2), or where it is refused, INFO is asked with every
// batch.

// infoPause is how long ROLE alone is asked, without INFO.
const infoPause = 100 * time.Millisecond

// readReplication reads INFO replication.
func readReplication(info []byte) roster.Replication {
	var r roster.Replication
	for line := range bytes.Lines(info) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(":"))
		switch string(name) {
		case "role":
			r.Replica = string(value) != "master"
		case "master_replid":
			r.ID = roster.ShortRun(string(value))
		case "master_replid2":
			r.Was = len(bytes.Trim(value, "0")) > 0
		}
	}
	return r
}
