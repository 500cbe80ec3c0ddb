package inspect

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

func monitorOf(t *testing.T, upstream endpoint.Endpoint, log *proxytest.Log) *Monitor {
	t.Helper()
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamServer, Server: upstream}
	m, err := events.NewMetrics(prometheus.NewRegistry(), events.Names{Build: make([]string, 3)})
	if err != nil {
		t.Fatal(err)
	}
	active := config.NewActive(config.NewSettings(cfg, &upstream, nil, &route.Router{Table: route.Builtin(), Rules: cfg.Locks}))
	return NewMonitor(t.Context(), active, m, slog.New(slog.NewTextHandler(log, nil)), Ask(t.Context(), cfg))
}

// The upstream goes away while nobody asks it anything, and comes back. Both are known soon, and the
// log has a line of each.
func TestAnUpstreamThatGoesAwayAndComesBack(t *testing.T) {
	server, log := proxytest.StartRedis(t), &proxytest.Log{}
	path := filepath.Join(filepath.Dir(server.Socket), "link")
	link := func() {
		if err := os.Symlink(server.Socket, path); err != nil {
			t.Fatal(err)
		}
	}
	link()
	upstream := serverAt(server)
	upstream.Name, upstream.Address = path, path
	s := monitorOf(t, upstream, log)
	var running sync.WaitGroup
	ctx, end := context.WithCancel(t.Context())
	defer running.Wait()
	defer end()
	running.Go(func() { s.Run(ctx) })
	awaits := func(usable bool) Upstream {
		t.Helper()
		for limit := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			up, ok := s.Upstream()
			if ok && (up.Problem == "") == usable {
				return up
			}
			if time.Now().After(limit) {
				t.Fatalf("it is %+v", up)
			}
		}
	}
	began := awaits(true)
	for limit := time.Now().Add(time.Minute); !strings.Contains(server.Ask(t, "CLIENT LIST"), "cmd=NULL"); {
		if time.Now().After(limit) {
			t.Fatal("no connection watches the upstream")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	server.Ask(t, "CLIENT KILL TYPE normal")
	if gone := awaits(false); !gone.Since.After(began.Since) || !strings.Contains(gone.Problem, "no such file") {
		t.Errorf("it is %+v", gone)
	}
	link()
	awaits(true)
	end()
	running.Wait()
	if text := log.String(); strings.Count(text, `level=ERROR msg="the upstream cannot be used`) != 1 || strings.Count(text, `level=INFO msg="the upstream can be used again`) != 1 {
		t.Errorf("the log has\n%s", text)
	}
}
