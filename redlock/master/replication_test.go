package master

import (
	"testing"
	"time"

	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
)

// What a real server answers after it was a replica, and while it has one.
func TestReplicationOfARealServer(t *testing.T) {
	first, other := livetest.Start(t), livetest.Start(t, "--port", "0", "--repl-diskless-sync-delay", "0")
	says := func(s *livetest.Server) roster.Replication {
		info, _ := resp.ParseBulk(s.Conn.Must("INFO", "replication"))
		return readReplication(info)
	}
	began := says(first)
	if began.Replica || began.Was || len(began.ID) != 12 {
		t.Fatalf("a master: %+v", began)
	}
	other.Conn.Must("REPLICAOF", "127.0.0.1", "1")
	if now := says(other); !now.Replica {
		t.Errorf("a replica: %+v", now)
	}
	before := says(other).ID
	other.Conn.Must("REPLICAOF", "NO", "ONE")
	if now := says(other); now.Replica || !now.Was || !now.Replaced(before) {
		t.Errorf("there and back: %+v, before %s", now, before)
	}
	backup := first.Dial()
	backup.Send(resp.AppendCommand(nil, "SYNC"))
	for deadline := time.Now().Add(livetest.Patience); says(first).ID == began.ID; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a replica came, and the id stayed")
		}
	}
	if now := says(first); now.Replaced(began.ID) {
		t.Errorf("its first replica has come: %+v", now)
	}
}
