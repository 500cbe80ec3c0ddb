package inspect

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/metrics"
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

// The monitor asks for rights at the start, for another run of the server and after a
// reload. It asks no more often, because each refusal leaves an entry in the server's
// log.
func TestMonitorAsksForRightsOnce(t *testing.T) {
	server := proxytest.StartRedis(t)
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamNone}
	cfg.Masters = config.Masters{Servers: []endpoint.Endpoint{serverAt(server)}}
	cfg.Masters.Servers[0].Username, cfg.Masters.Servers[0].Password = "proxy", "pw"
	server.Ask(t, "ACL SETUSER proxy on >pw ~* &* +@all -dump")
	m, err := metrics.New(prometheus.NewRegistry(), metrics.Names{Build: make([]string, 3)})
	if err != nil {
		t.Fatal(err)
	}
	current := config.NewActive(config.NewSettings(cfg, nil, cfg.Masters.Servers, &route.Router{Table: command.Builtin(), Rules: cfg.Locks}))
	s := NewMonitor(current, m, slog.New(slog.DiscardHandler))
	admin := redis.NewClient(serverAt(server).Options())
	defer admin.Close()
	looks := func(asked bool) {
		t.Helper()
		admin.Do(t.Context(), "ACL", "LOG", "RESET")
		var missing []string
		for _, h := range s.Look(t.Context()) {
			if h.kind == "rights" {
				missing = append(missing, h.detail)
			}
		}
		if !slices.Equal(missing, []string{"dump"}) {
			t.Errorf("missing are %q", missing)
		}
		if entries, err := admin.Do(t.Context(), "ACL", "LOG").Slice(); err != nil || len(entries) > 0 != asked {
			t.Errorf("the server's log has %v (%v), want some: %v", entries, err, asked)
		}
	}
	looks(true)
	looks(false)
	looks(false)
	s.rights[cfg.Masters.Servers[0].Name] = rightsOfRun{run: "another"}
	looks(true)
	looks(false)
	clear(s.rights)
	looks(true)
}

// What was logged as a hazard is logged once, and when it is over. Of an unreachable server nobody
// knows what is over. That it is unreachable is logged elsewhere.
func TestReportSaysWhatIsOver(t *testing.T) {
	log := &proxytest.Log{}
	s := NewMonitor(config.NewActive(&config.Settings{Config: config.Demo()}), nil, slog.New(slog.NewTextHandler(log, nil)))
	up := func(why string) Hazard {
		return Hazard{hazardAbsent, "unreachable", "up:1", "", "the upstream cannot be used: " + why}
	}
	few := Hazard{hazardWarning, "few", "", "", "2 masters"}
	full := Hazard{hazardWarning, "full", "m1:1", "", "m1 is full"}
	away := Hazard{hazardAbsent, "unreachable", "m1:1", "", "m1 cannot be used"}
	higher := Hazard{hazardWarning, "databases", "m2:1", "", "m2 has fewer databases than the upstream"}
	untold := Hazard{hazardWarning, "untold", "m1:1", "", "m1 refused INFO"}
	for _, step := range []struct {
		hazards []Hazard
		want    string
	}{
		{[]Hazard{few, up("refused")}, "level=WARN msg=\"2 masters\"\n"},
		{[]Hazard{few, up("refused")}, ""},
		{[]Hazard{few, up("no answer")}, ""},
		{[]Hazard{few, full}, "level=WARN msg=\"m1 is full\"\n"},
		{[]Hazard{few, away}, ""},
		{[]Hazard{few}, ""},
		{[]Hazard{few, full, higher}, "level=WARN msg=\"m1 is full\"\nlevel=WARN msg=\"m2 has fewer databases than the upstream\"\n"},
		{[]Hazard{few, untold, up("refused")}, "level=WARN msg=\"m1 refused INFO\"\n"},
	} {
		before := log.String()
		s.Report(step.hazards)
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
