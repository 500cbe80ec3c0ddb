package config

import (
	"testing"
	"time"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// The hash covers the shared settings and is the same in all versions of the proxy. The
// texts of -check do not change it, nor do settings that proxies need not share.
func TestConfigHash(t *testing.T) {
	with := func(change func(*Config)) *Config {
		cfg := Demo()
		cfg.Masters = Masters{Servers: []endpoint.Endpoint{{Name: "a:1", Password: "x"}, {Name: "b:1"}, {Name: "c:1"}}}
		cfg.Locks = route.Rules{{Match: "lock:*", DB: route.AnyDB}}
		change(cfg)
		return cfg
	}
	const want = 1482335171102050
	if got := with(func(*Config) {}).Hash(); got != want {
		t.Errorf("the hash of these settings was %d and is %d: proxies of the version before would show another one", want, got)
	}
	for name, change := range map[string]func(*Config){
		"listen": func(c *Config) { c.Listen = "0.0.0.0:1" }, "limits": func(c *Config) { c.Limits.Clients = 5 },
		"a password": func(c *Config) { c.Masters.Servers[0].Password = "y" }, "upstream": func(c *Config) { c.Upstream = Upstream{Kind: UpstreamNone} },
	} {
		if with(change).Hash() != want {
			t.Errorf("%s is in it", name)
		}
	}
	for name, change := range map[string]func(*Config){
		"masters":        func(c *Config) { c.Masters.Servers[0].Name = "d:1" },
		"match":          func(c *Config) { c.Locks[0].Match = "lock?*" },
		"db":             func(c *Config) { c.Locks[0].DB = 0 },
		"default_ttl":    func(c *Config) { c.Locks[0].DefaultTTL = time.Nanosecond },
		"wait":           func(c *Config) { c.Locks[0].Wait = time.Nanosecond },
		"renew":          func(c *Config) { c.Locks[0].Renew = time.Nanosecond },
		"on_disconnect":  func(c *Config) { c.Locks[0].Release = true },
		"companions":     func(c *Config) { c.Locks[0].Companions = []string{"x"} },
		"rules":          func(c *Config) { c.Locks = append(c.Locks, route.Rule{Match: "x"}) },
		"master_timeout": func(c *Config) { c.MasterTimeout++ },
		"retry.count":    func(c *Config) { c.Retry.Count++ },
		"retry.delay":    func(c *Config) { c.Retry.Delay++ },
		"clock_drift":    func(c *Config) { c.ClockDrift += 1e-9 },
		"restart_delay":  func(c *Config) { c.RestartDelay++ },
		"max_quarantine": func(c *Config) { c.MaxQuarantine++ },
	} {
		if with(change).Hash() == want {
			t.Errorf("%s is not in it", name)
		}
	}
}
