package inspect

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/embedded"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

// These tests run -check and the monitor against live servers.
func TestCheckAsksLiveServers(t *testing.T) {
	upstream := proxytest.StartRedis(t, "--databases", "20")
	good := proxytest.StartRedis(t)
	evicting := proxytest.StartRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	locked := proxytest.StartRedis(t, "--requirepass", proxytest.Password)
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamServer, Server: serverAt(upstream)}
	cfg.Masters = config.Masters{Servers: []endpoint.Endpoint{serverAt(good), serverAt(evicting), serverAt(locked)}}
	cfg.Auth.Users = []config.User{{Name: "app", Password: "pw", May: config.RightLocks}}
	report := Check(t.Context(), cfg, false)
	if report.Fine {
		t.Error("a master that lets nobody in is fine")
	}
	if got := fmt.Sprint(report.Servers[0].State, report.Servers[1].State, report.Servers[2].State, report.Servers[3].State); got != "reachablestartingrejectedunreachable" {
		t.Errorf("the states are %s", got)
	}
	text := textOf(report)
	for _, want := range []string{
		"master 2 (" + evicting.Socket + ") may evict locks when its memory is full (maxmemory-policy allkeys-lru), so it does not vote",
		"error:   master 3 (" + locked.Socket + ") cannot be used: NOAUTH Authentication required; set user and password in the server's URL",
		"warning: master 1 (" + good.Socket + ") has 16 databases, the upstream has 20",
		"\nusers: each one who may use locks is trusted with all lock keys",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "retry") || !strings.Contains(text, "(-all shows it)") {
		t.Errorf("a default is shown in\n%s", text)
	}
	unsaved := startUnsaved(t)
	cfg.Masters.Servers = []endpoint.Endpoint{serverAt(unsaved)}
	if text := textOf(Check(t.Context(), cfg, false)); strings.Contains(text, "it refuses locks") {
		t.Errorf("a server without save points refuses no writes:\n%s", text)
	}
	unsaved.Ask(t, `CONFIG SET save "3600 1"`)
	cfg.Upstream.Server = serverAt(unsaved)
	cfg.Masters.Servers = append(cfg.Masters.Servers, serverAt(proxytest.StartRedis(t, "--maxmemory", "1")), serverAt(proxytest.StartRedis(t, "--min-replicas-to-write", "1")))
	report = Check(t.Context(), cfg, false)
	text = textOf(report)
	for i, want := range []string{"it cannot save its data (MISCONF)", "its memory is full (OOM)", "it wants replicas (NOREPLICAS)"} {
		if want := fmt.Sprintf("error:   master %d (%s) does not vote: it refuses locks, because %s", i+1, cfg.Masters.Servers[i].Name, want); !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
		if report.Servers[i+1].State != "rejected" || report.Fine {
			t.Errorf("fine is %v, and master %d is %s", report.Fine, i+1, report.Servers[i+1].State)
		}
	}
	if !strings.Contains(text, "warning: the upstream ("+unsaved.Socket+") cannot write to its disk") {
		t.Errorf("the failed snapshot is not in\n%s", text)
	}
	cfg.Masters.Servers = []endpoint.Endpoint{serverAt(good), serverAt(evicting), serverAt(locked)}
	cfg.Upstream.Server = serverAt(upstream)
	cfg.Masters.Servers[1] = serverAt(proxytest.StartRedis(t, "--maxmemory", "100mb"))
	cfg.Masters.Servers[0].Password = "a password that it does not have"
	if report := Check(t.Context(), cfg, false); !strings.Contains(textOf(report), "error:   master 1 ("+good.Socket+") cannot be used: ERR AUTH <password> called without any password") {
		t.Errorf("a password that a server does not have is fine:\n%s", textOf(report))
	}
	cfg.Masters.Servers[0].Password = ""
	cfg.Masters.Servers[2].Password = proxytest.Password
	if report := Check(t.Context(), cfg, false); !report.Fine {
		t.Errorf("with the password, and masters that evict nothing, it is not fine:\n%s", textOf(report))
	}
	meter, err := events.NewMetrics(prometheus.NewRegistry(), events.Names{Build: make([]string, 3)})
	if err != nil {
		t.Fatal(err)
	}
	current := config.NewActive(config.NewSettings(cfg, nil, nil, &route.Router{Table: route.Builtin()}))
	before := current.Load().Router
	s := NewMonitor(t.Context(), current, meter, slog.New(slog.DiscardHandler), Ask(t.Context(), cfg))
	if s.Databases() != 20 || s.Version() == "" || s.Version() == embedded.Version {
		t.Errorf("the monitor found %d databases and version %q", s.Databases(), s.Version())
	}
	after := current.Load().Router
	if after == before {
		t.Error("the upstream's commands were not learnt")
	}
	if s.learn(t.Context(), s.known.again(t.Context())); current.Load().Router != after {
		t.Error("the commands of the same run were learnt again")
	}
}

// -check says what to do about a server that cannot be used.
func TestCheckExplains(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	encrypted, err := endpoint.Parse("rediss://" + silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamNone}
	cfg.Masters = config.Masters{Servers: []endpoint.Endpoint{{Name: "web", Network: "tcp", Address: web.Listener.Addr().String()}, encrypted}}
	text := textOf(Check(t.Context(), cfg, false))
	for _, want := range []string{
		"master 1 (web) cannot be used: malformed reply: unknown type byte; what listens there is no Redis (deploy/INCIDENTS.md#unreachable)\n",
		"master 2 (" + encrypted.Name + ") cannot be used: it did not answer in time; perhaps it speaks no TLS, and its URL asks for TLS (deploy/INCIDENTS.md#unreachable)\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func textOf(r Report) string {
	var text strings.Builder
	r.WriteText(&text)
	return text.String()
}

// startUnsaved starts a server without save points whose last snapshot failed.
func startUnsaved(t *testing.T) *proxytest.Redis {
	dir := t.TempDir()
	server := proxytest.StartRedis(t, "--dir", dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	server.Ask(t, "BGSAVE")
	for end := time.Now().Add(time.Minute); !strings.Contains(server.Ask(t, "INFO persistence"), "rdb_last_bgsave_status:err"); {
		if time.Now().After(end) {
			t.Fatal("the snapshot does not fail")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return server
}

func serverAt(s *proxytest.Redis) endpoint.Endpoint {
	return endpoint.Endpoint{Name: s.Socket, Network: "unix", Address: s.Socket}
}
