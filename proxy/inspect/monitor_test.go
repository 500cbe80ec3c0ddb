package inspect

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

func TestLowestVersion(t *testing.T) {
	for _, row := range []struct {
		versions []string
		want     string
	}{
		{nil, ""},
		{[]string{"7.0.15"}, "7.0.15"},
		{[]string{"7.0.15", "7.0.9", "10.0.0"}, "7.0.9"},
		{[]string{"8.0", "8.0.1"}, "8.0"},
		{[]string{"255.255.255", "7.2.4-rc1"}, "7.2.4-rc1"},
	} {
		if got := lowestVersion(row.versions); got != row.want {
			t.Errorf("%v: %s", row.versions, got)
		}
	}
}

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

// What was logged as a hazard is logged once, and when it is over.
func TestReportSaysWhatIsOver(t *testing.T) {
	log := &proxytest.Log{}
	s := &Monitor{log: slog.New(slog.NewTextHandler(log, nil))}
	few := Hazard{hazardWarning, events.Hazard{Kind: "few"}, "2 masters"}
	twice := func(how string) Hazard {
		return Hazard{hazardRefused, events.Hazard{Kind: "duplicate", Server: "m1:1"}, "one server twice: " + how}
	}
	for _, step := range []struct {
		hazards []Hazard
		want    string
	}{
		{[]Hazard{few}, "level=WARN msg=\"2 masters\"\n"},
		{[]Hazard{few}, ""},
		{[]Hazard{few, twice("a")}, "level=ERROR msg=\"one server twice: a\"\n"},
		{[]Hazard{few, twice("b")}, "level=ERROR msg=\"one server twice: b\"\n"},
		{[]Hazard{twice("b")}, "level=INFO msg=\"a hazard is over\" hazard=\"2 masters\"\n"},
		{nil, "level=INFO msg=\"a hazard is over\" hazard=\"one server twice: b\"\n"},
	} {
		before := log.String()
		s.hazards = step.hazards
		s.report()
		var got string
		for line := range strings.Lines(log.String()[len(before):]) {
			_, line, _ = strings.Cut(line, " ") // the time
			got += line
		}
		if got != step.want {
			t.Errorf("%v: logged\n%swant\n%s", step.hazards, got, step.want)
		}
	}
}

// Only an upstream that does not answer is asked every second: each look logs in there.
func TestPauseBetweenLooks(t *testing.T) {
	fails := errors.New("it does not answer")
	for name, test := range map[string]struct {
		upstream *Facts
		masters  []Facts
		want     time.Duration
	}{
		"all answer":       {&Facts{}, []Facts{{}, {}}, lookEvery},
		"a master is away": {&Facts{}, []Facts{{}, {Err: fails}}, lookAgain},
		"the upstream is":  {&Facts{Err: fails}, []Facts{{}, {}}, lookSoon},
		"both are":         {&Facts{Err: fails}, []Facts{{Err: fails}}, lookSoon},
		"locks only":       {nil, []Facts{{}}, lookEvery},
	} {
		if got := (Answers{Upstream: test.upstream, Masters: test.masters}).pause(); got != test.want {
			t.Errorf("%s: it waits %s, and should wait %s", name, got, test.want)
		}
	}
}
