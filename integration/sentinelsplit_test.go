package integration

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fakeSentinel names as the master of every group the server that it was given
// last, as a Sentinel does that was cut off from the others.
type fakeSentinel struct {
	listener net.Listener
	master   atomic.Pointer[redisServer]
}

func startFakeSentinel(t *testing.T, master *redisServer) *fakeSentinel {
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

// serve ends with the connection.
func (s *fakeSentinel) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		if _, err := readValue(in, nil); err != nil {
			return
		}
		answer := encode("name", "locks", "ip", "127.0.0.1", "port", fmt.Sprint(s.master.Load().port), "flags", "master", "num-slaves", "1", "config-epoch", "1")
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

func (s *fakeSentinel) url() string   { return "sentinel://" + s.listener.Addr().String() + "/locks" }
func (s *fakeSentinel) label() string { return "locks@" + s.listener.Addr().String() }

// TestSentinelSplit: a master of three fails over while the one before lives on,
// and one proxy still reaches that one and never the other, as in a partition.
// The two must never both vote, or each proxy would find a quorum of its own.
func TestSentinelSplit(t *testing.T) {
	t.Parallel()
	old, replica := startRedis(t, "old"), newRedis(t, "replica")
	replica.config = []string{"--replicaof", "127.0.0.1", fmt.Sprint(old.port)}
	replica.start(t)
	c := startServers(t)
	c.masters = c.masters[:2]
	proxyOver := func(s *fakeSentinel, notNew bool) *proxyProcess {
		return c.addProxy(t, proxyOptions{notNew: notNew, restartDelay: 3 * time.Second, logLevel: "info",
			masters: []string{c.masters[0].url(), c.masters[1].url(), s.url()}})
	}
	cutOff, sound := startFakeSentinel(t, old), startFakeSentinel(t, old)
	first := proxyOver(cutOff, false)
	others := connectionsOf(t, old)
	second := proxyOver(sound, true)
	await := func(p *proxyProcess, label, want string) {
		t.Helper()
		waitFor(t, label+" is "+want, func() error {
			if now := p.stateOf(t, label); now != want {
				return errors.New("it is " + now)
			}
			return nil
		})
	}
	await(first, cutOff.label(), "certified")
	await(second, sound.label(), "certified")
	waitFor(t, "the replica has the marker", func() error {
		if value, _ := replica.value(t, "redlock-proxy:master"); !strings.Contains(value, "member=3/3") {
			return fmt.Errorf("it has %q", value)
		}
		return nil
	})

	// The second proxy loses the old master; the first keeps its connection.
	if err := replica.direct.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	sound.master.Store(replica)
	for id := range connectionsOf(t, old) {
		if !others[id] { // the second proxy's; one may end by itself meanwhile
			_ = old.direct.Do(t.Context(), "CLIENT", "KILL", "ID", id).Err()
		}
	}
	await(second, sound.label(), "quarantined")
	await(first, cutOff.label(), "barred")
	await(second, sound.label(), "certified")
	await(first, cutOff.label(), "barred")

	// A lock of one proxy is one for the other, with one common master gone.
	c.masters[0].crash()
	mustAcquire(t, second.client(t), "lock:a", "token-of-the-second", longTTL)
	if ok, err := acquire(t.Context(), first.client(t), "lock:a", "token-of-the-first", longTTL); ok {
		t.Errorf("the lock is granted a second time (%v)", err)
	}
	if ok, err := acquire(t.Context(), first.client(t), "lock:b", "token-of-the-first", longTTL); ok || !noQuorum(err) {
		t.Errorf("a lock with the vote of the old master: %v %v, want QUORUMLOST", ok, err)
	}
}

// connectionsOf are all connections to a server, by their CLIENT ID.
func connectionsOf(t *testing.T, r *redisServer) map[string]bool {
	t.Helper()
	ids := map[string]bool{}
	for line := range strings.Lines(r.direct.ClientList(t.Context()).Val()) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		ids[id] = true
	}
	return ids
}
