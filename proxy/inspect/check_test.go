package inspect

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/embedded"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

// -check and the survey against live servers.
func TestCheckAsksLiveServers(t *testing.T) {
	upstream := proxytest.StartRedis(t, "--databases", "20")
	good := proxytest.StartRedis(t)
	evicting := proxytest.StartRedis(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	locked := proxytest.StartRedis(t, "--requirepass", proxytest.Password)
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamServer, Server: serverAt(upstream)}
	cfg.Masters = config.Masters{Servers: []endpoint.Endpoint{serverAt(good), serverAt(evicting), serverAt(locked)}}
	var out bytes.Buffer
	if Check(t.Context(), cfg, false, &out) {
		t.Error("a master that lets nobody in is fine")
	}
	text := out.String()
	for _, want := range []string{
		"master 2 (" + evicting.Socket + ") may evict locks when its memory is full (maxmemory-policy allkeys-lru), so it does not vote",
		"error:   master 3 (" + locked.Socket + ") cannot be used: NOAUTH",
		"warning: master 1 (" + good.Socket + ") has 16 databases, the upstream has 20",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "retry") || !strings.Contains(text, "(-all shows it)") {
		t.Errorf("a default is shown in\n%s", text)
	}
	cfg.Masters.Servers[1] = serverAt(proxytest.StartRedis(t, "--maxmemory", "100mb"))
	cfg.Masters.Servers[2].Password = proxytest.Password
	out.Reset()
	if !Check(t.Context(), cfg, false, &out) {
		t.Errorf("with the password, and masters that evict nothing, it is not fine:\n%s", out.String())
	}
	meter, err := metrics.New(prometheus.NewRegistry(), metrics.Names{Build: make([]string, 3)})
	if err != nil {
		t.Fatal(err)
	}
	current := config.NewActive(config.NewSettings(cfg, nil, nil, &route.Router{Table: command.Builtin()}))
	s := NewSurvey(current, meter, slog.New(slog.DiscardHandler))
	before := current.Load().Router
	s.Look(t.Context())
	if s.Databases() != 20 || s.Version() == "" || s.Version() == embedded.Version {
		t.Errorf("the survey found %d databases and version %q", s.Databases(), s.Version())
	}
	after := current.Load().Router
	if after == before {
		t.Error("the upstream's commands were not learnt")
	}
	if s.Look(t.Context()); current.Load().Router != after {
		t.Error("the commands of the same run were learnt again")
	}
}

func TestServerTable(t *testing.T) {
	_, upstream, masters := testServers(2)
	masters[0].persistence = describePersistence(true, true)
	masters[1] = Facts{title: "master 2", Name: "m2:6379", Err: errors.New("x")}
	var b strings.Builder
	writeServers(&b, upstream, masters)
	want := `SERVER    ADDRESS  STATE     VERSION       ROLE    DATABASES  MAXMEMORY-POLICY  PERSISTENCE  RUN_ID
upstream  up:6379  answers   redis 7.0.15  master  16         noeviction        -            up
master 1  m1:6379  answers   redis 7.0.15  master  16         noeviction        aof, rdb     run-id-o
master 2  m2:6379  unusable  -             -       -          -                 -            -
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// What -check lists shows no password.
func TestSettingsShowNoSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("upstream: redis://u:hunter2@a\nmasters: [redis://u:hunter2@b]\nauth: {password: hunter2}"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	writeSettings(&text, cfg)
	if strings.Contains(text.String(), "hunter2") {
		t.Errorf("the password is shown:\n%s", text.String())
	}
}

func serverAt(s *proxytest.Redis) endpoint.Endpoint {
	return endpoint.Endpoint{Name: s.Socket, Network: "unix", Address: s.Socket}
}
