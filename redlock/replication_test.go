package redlock

import (
	"bytes"
	"net"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// What a real server says when it was a replica, and when it gets one.
func TestReplicationOfARealServer(t *testing.T) {
	master, other := startLiveMaster(t), startLiveMaster(t, "--port", "0", "--repl-diskless-sync-delay", "0")
	says := func(m *liveMaster) roster.Replication {
		info, _ := resp.ParseBulk(m.must("INFO", "replication"))
		return readReplication(info)
	}
	isSole := func(m *liveMaster) bool { // by ROLE, and by INFO
		info, _ := resp.ParseBulk(m.must("INFO", "replication"))
		if byInfo := stream.IsSole(info); byInfo {
			return bytes.Equal(m.must("ROLE"), stream.RoleOfSole)
		}
		return false
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
	if isSole(other) {
		t.Error("INFO says nothing of the time as a replica")
	}
	master.must("SET", "a", "write that nobody hears of")
	if !isSole(master) {
		t.Errorf("a master without replicas answers ROLE with %q", master.must("ROLE"))
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
	if isSole(master) {
		t.Error("it has a replica, and INFO does not tell")
	}
}

// What is written after another server's copy was loaded tells of it in ROLE, also
// where that server's offset was 0.
func TestRoleTellsOfWritesAfterAFailover(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	from, m := startLiveMaster(t, "--port", port, "--repl-diskless-sync-delay", "0"), startLiveMaster(t)
	from.must("SET", "copied", "yes")
	m.must("REPLICAOF", "127.0.0.1", port)
	for deadline := time.Now().Add(livePatience); resp.IsNil(m.must("GET", "copied")); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not get the copy")
		}
	}
	m.must("REPLICAOF", "NO", "ONE")
	m.must("SET", "lock", "granted", "NX")
	if role := m.must("ROLE"); bytes.Equal(role, stream.RoleOfSole) {
		t.Errorf("ROLE tells nothing: %q", role)
	}
}
