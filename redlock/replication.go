package redlock

import (
	"bytes"

	"redlock-proxy/redlock/roster"
)

// Memory can be replaced without a restart: a master that is made a replica loads
// another server's copy, with the marker in it, and is made a master again. So
// what the server says of its replication is asked with every batch (check.go), and
// its replication id is on record in the marker.

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
