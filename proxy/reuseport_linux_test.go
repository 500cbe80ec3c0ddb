package proxy

import (
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
)

// With reuse_port the kernel divides the clients of an address between its listeners.
func TestListenersShareAnAddress(t *testing.T) {
	var accepted [2]atomic.Int64
	address := "127.0.0.1:0"
	for i := range accepted {
		listener, err := listen("listen", address, true)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		address = listener.Addr().String()
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				accepted[i].Add(1)
				conn.Close()
			}
		}()
	}
	const clients = 64
	for range clients {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	eventually(t, "all are accepted", func() bool { return accepted[0].Load()+accepted[1].Load() == clients })
	if accepted[0].Load() == 0 || accepted[1].Load() == 0 {
		t.Errorf("%d and %d clients", accepted[0].Load(), accepted[1].Load())
	}
	if alone, err := listen("listen", address, false); err == nil {
		alone.Close()
		t.Error("a listener for one process shares an address")
	}
	alone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	const want = "something without reuse_port, or of another user, listens there already; stop it, or change listen in the configuration"
	if _, err := listen("listen", alone.Addr().String(), true); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("beside a process alone: %v", err)
	}
}

// A process beside others gets clients only when its masters vote. Before, the others serve
// them without a pause.
func TestAProcessBesideOthersListensWhenItIsReady(t *testing.T) {
	servers := startGuardRedises(t, 4)
	r := startReloadable(t, servers[3], servers[:3]...)
	r.write(r.base + "reuse_port: yes\n")
	cfg, err := config.Load(r.file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.MasterTimeout = 1300 * time.Millisecond // shorter than a clock is watched
	p, err := New(cfg, slog.New(slog.DiscardHandler), new(slog.LevelVar), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if now := p.readiness(); p.listener == nil || !now.ready {
		t.Errorf("it listens (%v) while %s", p.listener, now.text)
	}
}
