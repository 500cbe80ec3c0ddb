package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
)

// What a real server says when it was a replica, and when it gets one.
func TestReplicationOfARealServer(t *testing.T) {
	master, other := startLiveMaster(t), startLiveMaster(t, "--port", "0", "--repl-diskless-sync-delay", "0")
	says := func(m *liveMaster) roster.Replication {
		info, _ := resp.ParseBulk(m.must("INFO", "replication"))
		return readReplication(info)
	}
	first := says(master)
	if first.Replica || first.Was || len(first.ID) != 12 {
		t.Fatalf("a master: %+v", first)
	}
	other.must("REPLICAOF", "127.0.0.1", "1")
	if now := says(other); !now.Replica {
		t.Errorf("a replica: %+v", now)
	}
	before := says(other).ID
	other.must("REPLICAOF", "NO", "ONE")
	if now := says(other); now.Replica || !now.Was || !now.Replaced(before) {
		t.Errorf("there and back: %+v, before %s", now, before)
	}
	backup := master.dial()
	backup.Send(resp.AppendCommand(nil, "SYNC"))
	for deadline := time.Now().Add(livePatience); says(master).ID == first.ID; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a replica came, and the id stayed")
		}
	}
	if now := says(master); now.Replaced(first.ID) {
		t.Errorf("its first replica has come: %+v", now)
	}
}
