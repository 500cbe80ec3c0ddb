package inspect

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

// The monitor asks a master at the start and after a reload. It asks no more often, because each
// refusal leaves an entry in the server's log. One that did not answer is asked until it does.
func TestMonitorAsksEachMasterOnce(t *testing.T) {
	server, late := proxytest.StartRedis(t), proxytest.StartRedis(t)
	path := filepath.Join(filepath.Dir(late.Socket), "link")
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamNone}
	cfg.Masters = config.Masters{Servers: []endpoint.Endpoint{serverAt(server), serverAt(late)}}
	cfg.Masters.Servers[1].Name, cfg.Masters.Servers[1].Address = path, path
	for i := range cfg.Masters.Servers {
		cfg.Masters.Servers[i].Username, cfg.Masters.Servers[i].Password = "proxy", "pw"
	}
	for _, s := range []*proxytest.Redis{server, late} {
		s.Ask(t, "ACL SETUSER proxy on >pw ~* &* +@all -getset -dump")
	}
	m, err := events.NewMetrics(prometheus.NewRegistry(), events.Names{Build: make([]string, 3)})
	if err != nil {
		t.Fatal(err)
	}
	settings := func(cfg *config.Config) config.Settings {
		return *config.NewSettings(cfg, nil, cfg.Masters.Servers, &route.Router{Table: route.Builtin(), Rules: cfg.Locks})
	}
	first := settings(cfg)
	current := config.NewActive(&first)
	s := NewMonitor(t.Context(), current, m, slog.New(slog.DiscardHandler), Ask(t.Context(), cfg))
	asked := func(server *proxytest.Redis) bool {
		t.Helper()
		admin := redis.NewClient(serverAt(server).Options())
		defer admin.Close()
		entries, err := admin.Do(t.Context(), "ACL", "LOG").Slice()
		if err != nil {
			t.Fatal(err)
		}
		admin.Do(t.Context(), "ACL", "LOG", "RESET")
		return len(entries) > 0
	}
	knows := func(want string, first, second bool) {
		t.Helper()
		var rights []string
		for _, h := range s.hazards {
			if h.Kind == "rights" {
				rights = append(rights, h.Detail+" of "+filepath.Base(h.Server))
			}
		}
		if got := strings.Join(rights, ", "); got != want { // package redlock finds out that DUMP is missing
			t.Errorf("hazards are %q, want %q", got, want)
		}
		if a, b := asked(server), asked(late); a != first || b != second {
			t.Errorf("asked: %v, %v; want %v, %v", a, b, first, second)
		}
	}
	looks := func(want string, first, second bool) {
		t.Helper()
		s.learn(t.Context(), s.known.again(t.Context()))
		knows(want, first, second)
	}
	base := filepath.Base(server.Socket)
	knows("getset of "+base, true, false)
	looks("getset of "+base, false, false)
	if err := os.Symlink(late.Socket, path); err != nil {
		t.Fatal(err)
	}
	looks("getset of "+base+", getset of link", false, true)
	server.Ask(t, "ACL SETUSER proxy +getset")
	looks("getset of "+base+", getset of link", false, false)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.learn(t.Context(), Ask(t.Context(), cfg)) // as after a reload
	knows("getset of link", true, false)        // link is away, and said so before
	if s.Version() == "" {
		t.Error("no version is known")
	}
}
