package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// What a real server says when it was a replica, and when it gets one.
func TestReplicationOfARealServer(t *testing.T) {
	master, other := startLiveMaster(t), startLiveMaster(t, "--port", "0", "--repl-diskless-sync-delay", "0")
	says := func(m *liveMaster) replication {
		info, _ := resp.ParseBulk(m.must("INFO", "replication"))
		return readReplication(info)
	}
	first := says(master)
	if first.replica || first.was || len(first.id) != 12 {
		t.Fatalf("a master: %+v", first)
	}
	other.must("REPLICAOF", "127.0.0.1", "1")
	if now := says(other); !now.replica {
		t.Errorf("a replica: %+v", now)
	}
	before := says(other).id
	other.must("REPLICAOF", "NO", "ONE")
	if now := says(other); now.replica || !now.was || !now.replaced(before) {
		t.Errorf("there and back: %+v, before %s", now, before)
	}
	backup := master.dial()
	backup.Send(resp.AppendCommand(nil, "SYNC"))
	for deadline := time.Now().Add(livePatience); says(master).id == first.id; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a replica came, and the id stayed")
		}
	}
	if now := says(master); now.replaced(first.id) {
		t.Errorf("its first replica has come: %+v", now)
	}
}
