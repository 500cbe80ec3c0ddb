package proxy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/redlock"
)

func TestBannerSaysWhatToType(t *testing.T) {
	text := banner(config.Demo(), "127.0.0.1:6380", "127.0.0.1:9380", time.Time{})
	for _, want := range []string{
		"listening on   127.0.0.1:6380\n", "  page           http://127.0.0.1:9380/ ", "5 embedded (quorum 3)", "DEMO: ",
		"redis-cli -p 6380 SET lock:demo me NX PX 30000",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamNone}
	cfg.Masters = config.Masters{Servers: make([]endpoint.Endpoint, 3)}
	cfg.Admin = ""
	cfg.Auth.Password = "hunter2"
	text = banner(cfg, "unix:/run/s", "", time.Time{})
	for _, unwanted := range []string{"DEMO", "toys", "http://", "hunter2", "embedded", "to the upstream"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("%q in\n%s", unwanted, text)
		}
	}
	const notice = "new set of masters: locks can be granted from 2026-11-21T12:00:30Z; start once with -new if no lock can be held on them yet\n"
	if strings.Contains(text, "new set") || !strings.Contains(banner(cfg, "unix:/run/s", "", time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)), notice) {
		t.Errorf("a new set is not told of: %s", text)
	}
	if !strings.Contains(text, "redis-cli -s /run/s -a PASSWORD SET") {
		t.Errorf("the command is wrong in\n%s", text)
	}
}

func TestBannerNamesAPageThatOpens(t *testing.T) {
	if text := banner(config.Demo(), "127.0.0.1:6380", "[::]:9380", time.Time{}); !strings.Contains(text, "http://localhost:9380/ ") {
		t.Errorf("no address to open in\n%s", text)
	}
}

func TestClientCommand(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:1":                     "redis-cli -p 1",
		"[::]:1":                        "redis-cli -p 1",
		"10.0.0.1:1":                    "redis-cli -h 10.0.0.1 -p 1",
		"127.0.0.1:1":                   "redis-cli -p 1",
		"unix:/run/a.so":                "redis-cli -s /run/a.so",
		"127.0.0.1:1, 10.0.0.1:2 (TLS)": "redis-cli -p 1",
		"10.0.0.1:2 (TLS)":              "redis-cli --tls -h 10.0.0.1 -p 2",
	} {
		if got := clientCommand(config.Demo(), listen); got != want {
			t.Errorf("%s: %s", listen, got)
		}
	}
}

// The banner shows no password.
func TestBannerShowsNoSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("upstream: redis://u:hunter2@a\nmasters: [redis://u:hunter2@b]\nauth: {password: hunter2}"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, config.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	if text := banner(cfg, "127.0.0.1:1", "", time.Time{}); strings.Contains(text, "hunter2") {
		t.Errorf("the password is shown:\n%s", text)
	}
}

// A person hears of a new set also between its begin and the moment when its quarantines are known.
func TestWhenANewSetIsToldOf(t *testing.T) {
	known, begins := time.Unix(100, 0), time.Unix(200, 0)
	voting := []redlock.MasterStatus{{State: redlock.Voting}}
	for name, row := range map[string]struct {
		status redlock.Status
		blank  bool
		want   time.Time
	}{
		"it has no name yet":           {redlock.Status{Needed: 1}, true, begins},
		"no quarantine is known yet":   {redlock.Status{Needed: 1, Set: "s"}, true, begins},
		"its quarantines are known":    {redlock.Status{Needed: 1, Set: "s", NewUntil: known}, true, known},
		"its quarantines are over":     {redlock.Status{Needed: 1, Set: "s", Masters: voting}, true, time.Time{}},
		"another process has begun it": {redlock.Status{Needed: 1, Set: "s", NewUntil: known}, false, known},
		"an old set":                   {redlock.Status{Needed: 1, Set: "s"}, false, time.Time{}},
	} {
		if got := newSetUntil(row.status, row.blank, begins); !got.Equal(row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}
