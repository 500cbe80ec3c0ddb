package operation

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// fakeSentinel behaves like a Sentinel that is cut off from the others. For every group it
// names one server as the master: the last that the test gave it.
type fakeSentinel struct {
	listener net.Listener
	master   atomic.Pointer[rig.Server]
}

func startFakeSentinel(t *testing.T, master *rig.Server) *fakeSentinel {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	s := &fakeSentinel{listener: listener}
	s.master.Store(master)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

// serve answers one connection until it ends.
func (s *fakeSentinel) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		if _, err := rig.ReadValue(in, nil); err != nil {
			return
		}
		answer := rig.Encode("name", "locks", "ip", "127.0.0.1", "port", fmt.Sprint(s.master.Load().Port), "flags", "master", "num-slaves", "1", "config-epoch", "1")
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

func (s *fakeSentinel) url() string   { return "sentinel://" + s.listener.Addr().String() + "/locks" }
func (s *fakeSentinel) label() string { return "locks@" + s.listener.Addr().String() }

// TestSentinelSplit: one of three masters fails over, but its old server lives on. As in a
// partition, one proxy still reaches only the old server and never the new one. The two
// servers must never both vote, or each proxy would find its own quorum.
func TestSentinelSplit(t *testing.T) {
	t.Parallel()
	old, replica := rig.StartServer(t, "old"), rig.NewServer(t, "replica")
	replica.Config = []string{"--replicaof", "127.0.0.1", fmt.Sprint(old.Port)}
	replica.Start(t)
	c := rig.StartServers(t)
	c.Masters = c.Masters[:2]
	proxyOver := func(s *fakeSentinel, notNew bool) *rig.Proxy {
		return c.AddProxy(t, rig.Options{NotNew: notNew, RestartDelay: 4 * time.Second, MaxQuarantine: 12 * time.Second, LogLevel: "info",
			Masters: []string{c.Masters[0].URL(), c.Masters[1].URL(), s.url()}})
	}
	cutOff, sound := startFakeSentinel(t, old), startFakeSentinel(t, old)
	first := proxyOver(cutOff, false)
	others := connectionsOf(t, old)
	second := proxyOver(sound, true)
	await := func(p *rig.Proxy, label, want string) {
		t.Helper()
		rig.WaitFor(t, label+" is "+want, func() error {
			if now := p.StateOf(t, label); now != want {
				return errors.New("it is " + now)
			}
			return nil
		})
	}
	await(first, cutOff.label(), "voting")
	await(second, sound.label(), "voting")
	rig.WaitFor(t, "the replica has the marker", func() error {
		if value, _ := replica.Value(t, "redlock-proxy:master"); !strings.Contains(value, "member=3/3") {
			return fmt.Errorf("it has %q", value)
		}
		return nil
	})

	// The second proxy loses the old server. The first keeps its connection.
	if err := replica.Direct.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	sound.master.Store(replica)
	for id := range connectionsOf(t, old) {
		if !others[id] { // a connection of the second proxy; it may end by itself meanwhile
			_ = old.Direct.Do(t.Context(), "CLIENT", "KILL", "ID", id).Err()
		}
	}
	await(second, sound.label(), "quarantined")
	await(first, cutOff.label(), "rejected")
	await(second, sound.label(), "voting")
	await(first, cutOff.label(), "rejected")

	// Each proxy sees the other's lock, even with one common master gone.
	c.Masters[0].Kill()
	rig.MustAcquire(t, second.Client(t), "lock:a", "token-of-the-second", rig.LongTTL)
	if ok, err := rig.Acquire(t.Context(), first.Client(t), "lock:a", "token-of-the-first", rig.LongTTL); ok || !rig.NoQuorum(err) {
		t.Errorf("a lock that the second proxy granted: %v %v, want QUORUMLOST", ok, err)
	}
	if ok, err := rig.Acquire(t.Context(), first.Client(t), "lock:b", "token-of-the-first", rig.LongTTL); ok || !rig.NoQuorum(err) {
		t.Errorf("a lock with the vote of the old master: %v %v, want QUORUMLOST", ok, err)
	}
}

// connectionsOf returns the CLIENT IDs of all connections to a server.
func connectionsOf(t *testing.T, r *rig.Server) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for line := range strings.Lines(r.Direct.ClientList(t.Context()).Val()) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		ids[id] = true
	}
	return ids
}
