package redlock

import (
	"bytes"
)

// Memory can be replaced without a restart: a master that is made a replica loads
// another server's copy, with the marker in it, and is made a master again. So
// what the server says of its replication is asked with every batch, and its
// replication id is on record in the marker.

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
