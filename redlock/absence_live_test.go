package redlock

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
)

// standings records every reason that a Locker reports for a master's state.
type standings struct {
	nobody
	mu   sync.Mutex
	told map[string][]string
}

func (s *standings) Standing(m roster.MasterStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[m.Name] = append(s.told[m.Name], m.Reason)
}

func (s *standings) of(master string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told[master])
}

// The status of a master that is away says why, if possible in the server's own words. It
// says so once, however often the master is dialled.
func TestStatusSaysWhyAMasterIsAway(t *testing.T) {
	locked, full := startLiveMaster(t, "--requirepass", "secret"), startLiveMaster(t, "--maxclients", "1")
	nobody := portOfNobody(t)
	told := &standings{told: map[string][]string{}}
	var dials [4]atomic.Int64
	server := func(i int, name, network, address, password string) Master {
		return Master{Name: name, Password: password, Dial: func(ctx context.Context) (net.Conn, error) {
			dials[i].Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}}
	}
	locker, err := New(Config{Loop: startLoop(t), MasterTimeout: livePatience, Observer: told, Masters: []Master{
		server(0, "wrong password", "unix", locked.socket, "guess"),
		server(1, "no password", "unix", locked.socket, ""),
		server(2, "full", "unix", full.socket, ""),
		server(3, "nobody", "tcp", nobody, ""),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		locker.Close(gone)
	}()
	for deadline := time.Now().Add(livePatience); ; time.Sleep(5 * time.Millisecond) {
		often := true
		for i := range dials {
			often = often && dials[i].Load() >= 3
		}
		if often {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the masters are not dialled again")
		}
	}
	for i, want := range []string{
		"it is not connected: AUTH refused: WRONGPASS",
		"it is not connected: CLIENT refused: NOAUTH Authentication required.",
		"it is not connected: CLIENT refused: ERR max number of clients reached",
		"it is not connected: connection refused",
	} {
		status := locker.Status().Masters[i]
		if got := told.of(status.Name); status.State != roster.Unreachable || status.Reason != want || !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %v: %q, and was told as %q", status.Name, status.State, status.Reason, got)
		}
	}
}

// portOfNobody is an address at which nobody listens until the test ends: a connection has the port.
func portOfNobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}
