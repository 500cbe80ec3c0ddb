package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// parseConfig is parse without flags.
func parseConfig(file string, text []byte) (*Config, error) { return parse(file, text, Flags{}) }

// The shipped file promises to show the defaults and to be equal to -demo.
func TestShippedConfigIsTheDefaults(t *testing.T) {
	const file = "../../config.yaml"
	shipped, err := Load(file, Flags{})
	if err != nil {
		t.Fatal(err)
	}
	want := Demo()
	want.Source = file
	shipped.places = nil
	if !reflect.DeepEqual(shipped, want) {
		t.Errorf("the shipped file and the defaults differ:\n%+v\n%+v", shipped, want)
	}
}

// Without a file nothing starts, least of all embedded servers that grant every lock.
func TestLoadWithoutAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := Load("", Flags{}); err == nil || !strings.Contains(err.Error(), "config.yaml does not exist") || !strings.Contains(err.Error(), "start it with -demo: it starts redis-server if that is installed, or else uses embedded servers;") {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile("config.yaml", []byte("upstream: none\nmasters: embedded\nlisten: :7000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load("", Flags{})
	if err != nil || cfg.Listen != ":7000" || cfg.Source != "config.yaml" {
		t.Fatalf("config.yaml in the working directory was not read: %+v, %v", cfg, err)
	}
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	if _, err = Load(missing, Flags{}); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("a named file that is missing gave %v", err)
	}
}

const goodValues = `
listen: unix:/run/proxy.sock
admin: ""
upstream: rediss://app:p%40ss@Redis.Example:7000/3
masters:
  - redis://10.0.0.1
  - redis://:pw@[::1]:7001
  - unix:///run/redis.sock
locks:
  - {match: "a*", db: 0, default_ttl: 90s, wait: 1500ms, companions: ["b*", c]}
  - {match: "a*", renew: 10m, on_disconnect: release}
  - {match: "d*", on_disconnect: keep}
master_timeout: 1.5s
retry: {count: 0, delay: 0}
clock_drift: 0
restart_delay: 1m
max_quarantine: 1h
heal: {every: 1m, rate: 5, size: 64kb}
auth: {password: 0123}
limits: {clients: 5, bulk: 64M, idle: 5m}
log: {level: debug, format: json}
unix_permissions: 0770
upstream_connections: own
ignore: ["e*"]
`

func TestConfigValues(t *testing.T) {
	cfg, err := parseConfig("f", []byte(goodValues))
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Source: "f", Listen: "unix:/run/proxy.sock", UnixPermissions: 0o770, AdminHosts: []string{},
		Locks:         route.Rules{{Match: "a*", DB: 0, DefaultTTL: 90 * time.Second, Wait: 1500 * time.Millisecond, Companions: []string{"b*", "c"}}, {Match: "a*", DB: route.AnyDB, Renew: 10 * time.Minute, Release: true}, {Match: "d*", DB: route.AnyDB}},
		Ignore:        []string{"e*"},
		MasterTimeout: 1500 * time.Millisecond,
		RestartDelay:  time.Minute, MaxQuarantine: time.Hour,
		Heal: Heal{Every: time.Minute, Rate: 5, Size: 64 << 10},
		Auth: Auth{Password: "0123", May: RightBoth}, AuthCache: 5 * time.Minute,
		UpstreamConnections: ConnectionsOwn,
		Limits:              Demo().Limits,
		Log:                 Log{Level: "debug", Format: "json"},
	}
	want.Limits.Clients, want.Limits.Bulk, want.Limits.Idle = 5, 64_000_000, 5*time.Minute
	upstream, masters := cfg.Upstream.Server, cfg.Masters.Servers
	if cfg.places["masters[2]"] != 8 || cfg.places["retry.delay"] != 14 {
		t.Errorf("the keys stand in lines %v", cfg.places)
	}
	cfg.Upstream, cfg.Masters, cfg.places = Upstream{}, Masters{}, nil
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("got  %+v\nwant %+v", cfg, want)
	}
	if upstream.Name != "Redis.Example:7000" || upstream.Username != "app" || upstream.Password != "p@ss" ||
		upstream.DB != 3 || upstream.TLS == nil || upstream.TLS.Options().ServerName != "Redis.Example" {
		t.Errorf("upstream is %#v with TLS %v", endpointFields(upstream), upstream.TLS)
	}
	got := fmt.Sprint(endpointFields(masters[0]), endpointFields(masters[1]), endpointFields(masters[2]))
	if got != "[10.0.0.1:6379 tcp 10.0.0.1:6379  ] [[::1]:7001 tcp [::1]:7001  pw] [/run/redis.sock unix /run/redis.sock  ]" {
		t.Errorf("masters are %s", got)
	}
}

func endpointFields(e endpoint.Endpoint) []string {
	return []string{e.Name, e.Network, e.Address, e.Username, string(e.Password)}
}

// No way of printing a configuration shows a password.
func TestConfigPrintsNoSecrets(t *testing.T) {
	cfg, err := parseConfig("f", []byte("upstream: redis://u:hunter2@a\nmasters: [redis://u:hunter2@b]\nauth: {password: hunter2}"))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		fmt.Fprintf(&text, verb+verb, cfg, *cfg)
	}
	slog.New(slog.NewTextHandler(&text, nil)).Info("x", "cfg", cfg)
	slog.New(slog.NewJSONHandler(&text, nil)).Info("x", "cfg", cfg, "password", cfg.Auth.Password)
	json.NewEncoder(&text).Encode(cfg)
	if strings.Contains(text.String(), "hunter2") || strings.Contains(text.String(), "68756e74657232") {
		t.Errorf("the password is shown:\n%s", text.String())
	}
}

func FuzzConfigNeverPanics(f *testing.F) {
	f.Add("upstream: none\nmasters: embedded\n")
	f.Add("a: &x [*x]\n")
	f.Add("locks: [{match: \"\", db: -1}]\n? [a]: b\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := parseConfig("f", []byte(text))
		if (cfg == nil) == (err == nil) {
			t.Fatalf("got %v and %v", cfg, err)
		}
	})
}

func FuzzConfigValues(f *testing.F) {
	for _, text := range []string{"50ms", "-1h", "512mb", "9223372036854775807gb", "64K", "0.5", "NaN", "0x1p-2", "127.0.0.1:6380", "[::]:0", "unix:/run/s", "unix:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(value any, bounds string) error {
			return setting{place: value, allowed: bounds}.set(text)
		}
		var d time.Duration
		if read(&d, "0s 1h") == nil && (d < 0 || d > time.Hour) {
			t.Errorf("%q is read as the duration %s", text, d)
		}
		var n int64
		if read(&n, "1kb 1024gb") == nil && (n < 1<<10 || n > 1<<40) {
			t.Errorf("%q is read as %d bytes", text, n)
		}
		var x float64
		if read(&x, "0 0.5") == nil && !(x >= 0 && x <= 0.5) {
			t.Errorf("%q is read as %g", text, x)
		}
		_ = CheckListen(text, true)
	})
}

// -learn is locks: learn, whatever the file says, and it needs no masters.
func TestLearning(t *testing.T) {
	for text, learn := range map[string]bool{
		"upstream: redis://h\nlocks: learn\n":                       false,
		"upstream: redis://h\nmasters: [redis://m]\nlocks: learn\n": false,
		"upstream: redis://h\nlocks:\n  - match: a\n":               true,
		"upstream: redis://h\n":                                     true,
	} {
		cfg, err := parse("f", []byte(text), Flags{Learn: learn})
		if err != nil || !cfg.Learns() || len(cfg.EmbeddedServers()) > 0 {
			t.Errorf("%q, %v: %v, %v", text, learn, cfg, err)
		}
	}
	if cfg, err := parseConfig("f", []byte("upstream: redis://h\nmasters: embedded\n")); err != nil || cfg.Learns() {
		t.Errorf("the default learns, %v", err)
	}
}

// -admin takes the place of the file's admin, and is checked like that.
func TestAdminFlag(t *testing.T) {
	const text = "upstream: none\nmasters: embedded\nlisten: 127.0.0.1:6380\nadmin: 127.0.0.1:6380\n"
	cfg, err := parse("f", []byte(text), Flags{Admin: "127.0.0.1:9381"})
	if err != nil || cfg.Admin != "127.0.0.1:9381" || cfg.AdminFlag != cfg.Admin {
		t.Errorf("got %+v, %v", cfg, err)
	}
	if _, err := parse("f", []byte(text), Flags{Admin: ":6380"}); err == nil || !strings.Contains(err.Error(), "admin: :6380 is the listen address") {
		t.Errorf("the listen address: %v", err)
	}
}
