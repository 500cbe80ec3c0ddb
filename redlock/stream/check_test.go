package stream

import (
	"bytes"
	"net"
	"testing"
	"time"

	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
)

// What a real server answers after it was a replica, and while it has one.
func TestWhoIsAskedRoleOnly(t *testing.T) {
	isSole := func(m *livetest.Server) bool { // by ROLE, and by INFO
		info, _ := resp.ParseBulk(m.Must("INFO", "replication"))
		return isSole(info) && bytes.Equal(m.Must("ROLE"), roleOfSole)
	}
	master, other := livetest.Start(t), livetest.Start(t, "--repl-diskless-sync-delay", "0")
	other.Must("REPLICAOF", "127.0.0.1", "1")
	if isSole(other) {
		t.Error("a replica")
	}
	other.Must("REPLICAOF", "NO", "ONE")
	if isSole(other) {
		t.Error("INFO says nothing of the time as a replica")
	}
	master.Must("SET", "a", "write that nobody hears of")
	if !isSole(master) {
		t.Errorf("a master without replicas answers ROLE with %q", master.Must("ROLE"))
	}
	master.Dial().Send(resp.AppendCommand(nil, "SYNC"))
	for deadline := time.Now().Add(livetest.Patience); isSole(master); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has a replica, and ROLE does not tell")
		}
	}
}

// A write after another server's copy was loaded shows in ROLE, even if that server's
// offset was 0.
func TestRoleTellsOfWritesAfterAFailover(t *testing.T) {
	from, m := livetest.Start(t, "--repl-diskless-sync-delay", "0"), livetest.Start(t)
	port := listenAnywhere(t, from)
	from.Must("SET", "copied", "yes")
	m.Must("REPLICAOF", "127.0.0.1", port)
	for deadline := time.Now().Add(livetest.Patience); resp.IsNil(m.Must("GET", "copied")); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not get the copy")
		}
	}
	m.Must("REPLICAOF", "NO", "ONE")
	m.Must("SET", "lock", "granted", "NX")
	if role := m.Must("ROLE"); bytes.Equal(role, roleOfSole) {
		t.Errorf("ROLE tells nothing: %q", role)
	}
}

// listenAnywhere has a server listen on a port that nothing else has taken.
func listenAnywhere(t *testing.T, m *livetest.Server) (port string) {
	t.Helper()
	for range 100 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(listener.Addr().String())
		listener.Close()
		if reply := m.Do("CONFIG", "SET", "port", port); !resp.IsError(reply) {
			return port
		}
	}
	t.Fatal("the server can listen on no port")
	return ""
}
