package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/redlock"
)

// configChecks find the mistakes that no single value shows.
type configChecks struct {
	*configReader
	cfg *Config
}

func (c configChecks) all() {
	if !c.has("upstream") {
		c.fail("upstream", "is missing; write the URL of your Redis, none, or embedded to try it out")
	}
	if !c.has("masters") && !(c.cfg.Learns() && c.sound("locks")) {
		c.fail("masters", "is missing; list the URLs of the lock masters, or write embedded to try it out")
	}
	if c.cfg.Learns() && c.sound("locks") && c.cfg.Upstream.Kind == UpstreamNone && c.has("upstream") {
		c.fail("locks", "cannot be learned without an upstream, which would serve the keys; write - match: \"*\", because every key is a lock there")
	}
	c.addresses()
	c.masters()
	c.tls()
	c.users()
	c.durations()
	for i, glob := range c.cfg.Ignore {
		if key := elementKey("ignore", i); glob == "" && c.sound(key) {
			c.fail(key, "is empty; write a Redis glob over the whole key, such as \"idempotency:*\"")
		}
	}
}

func (c configChecks) durations() {
	cfg := c.cfg
	if least := redlock.LeastRestartDelay(cfg.MasterTimeout, cfg.ClockDrift); cfg.RestartDelay < least {
		c.failAt(cmp.Or(c.places["restart_delay"], c.places["master_timeout"], c.places["clock_drift"]), "restart_delay", "%s is too short; it must be %s at least with master_timeout %s and clock_drift %v, because a proxy may take that long to write a master's marker, and the master must not vote before that",
			ShortDuration(cfg.RestartDelay), ShortDuration(least), ShortDuration(cfg.MasterTimeout), cfg.ClockDrift)
	}
	if cfg.MaxQuarantine < cfg.RestartDelay {
		c.failAt(cmp.Or(c.places["max_quarantine"], c.places["restart_delay"]), "max_quarantine", "%s is shorter than restart_delay (%s); raise the one or lower the other",
			ShortDuration(cfg.MaxQuarantine), ShortDuration(cfg.RestartDelay))
	}
	for i, rule := range cfg.Locks {
		if least := redlock.LeastTTL(cfg.ClockDrift); rule.DefaultTTL > 0 && rule.DefaultTTL < least {
			c.fail(elementKey("locks", i)+".default_ttl", "%s is too short, and no lock would ever be granted; it must be %s at least with clock_drift %v, and well above the time in which the masters answer",
				ShortDuration(rule.DefaultTTL), ShortDuration(least), cfg.ClockDrift)
		}
	}
}

func (c configChecks) addresses() {
	cfg := c.cfg
	c.check("listen", CheckListen(cfg.Listen, true))
	c.check("tls.listen", CheckListen(cfg.TLS.Listen, false))
	c.check("admin", CheckListen(cfg.Admin, false))
	for i, name := range cfg.AdminHosts {
		if name == "" || strings.ContainsAny(name, ":/* ") {
			c.fail(elementKey("admin_hosts", i), "is not a host name; write each name in full, without a scheme and a port, such as locks.example.com")
		}
	}
	if cfg.Listen == "" && cfg.TLS.Listen == "" && c.sound("listen") && c.sound("tls") {
		c.fail("listen", "is empty and tls.listen is not set, so no client could connect")
	}
	if samePort(cfg.TLS.Listen, cfg.Listen) {
		c.fail("tls.listen", "%s is the plain listen address; the two need different ports", cfg.TLS.Listen)
	}
	if cfg.ReusePort && strings.HasPrefix(cfg.Listen, UnixPrefix) {
		c.fail("reuse_port", "cannot be used with the unix: socket in listen, which one process has for itself; give each process a listen address of its own, or use a TCP address")
	}
	for _, listen := range []string{cfg.Listen, cfg.TLS.Listen} {
		if listen != "" {
			c.listens(listen)
		}
	}
}

// listens reports settings that collide with an address on which the proxy listens.
func (c configChecks) listens(listen string) {
	cfg := c.cfg
	if cfg.Admin != "" && samePort(cfg.Admin, listen) {
		c.fail("admin", "%s is the listen address; the two need different ports", cfg.Admin)
	}
	if cfg.Upstream.Kind == UpstreamServer && reaches(cfg.Upstream.Server, listen) {
		c.fail("upstream", "%s is the proxy's own listen address", cfg.Upstream.Server.Name)
	}
	for i, master := range cfg.Masters.Servers {
		if reaches(master, listen) {
			c.fail(elementKey("masters", i), "%s is the proxy's own listen address", master.Name)
		}
	}
}

func (c configChecks) masters() {
	for i, server := range c.cfg.Masters.Servers {
		key := elementKey("masters", i)
		if !c.sound(key) {
			continue
		}
		if server.DB != 0 {
			c.fail(key, "a master's URL must not name a database: a lock in database n lives in database n of every master")
		}
		if at := slices.IndexFunc(c.cfg.Masters.Servers[:i], server.Same); at >= 0 {
			c.fail(key, "%s is the same server as %s on line %d; one server has one vote", server.Name, c.cfg.Masters.Servers[at].Name, c.places[elementKey("masters", at)])
		}
	}
}

// check reports err for a key, if there is an error and the file has the key.
func (c configChecks) check(key string, err error) {
	if err != nil && c.has(key) {
		c.fail(key, "%s", err)
	}
}

func elementKey(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// samePort tells whether two listen addresses would collide.
func samePort(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(endpoint.CanonicalAddress(a))
	hostB, portB, errB := net.SplitHostPort(endpoint.CanonicalAddress(b))
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return hostA == hostB || EveryAddress(hostA) || EveryAddress(hostB)
}

// EveryAddress tells whether a listener on host listens on every address of this machine.
func EveryAddress(host string) bool {
	ip, _ := netip.ParseAddr(endpoint.CanonicalHost(host))
	return host == "" || ip.IsUnspecified()
}

// reaches tells whether a server's address is the address on which the proxy listens, so
// that the proxy would talk to itself. It compares the texts and resolves no names.
func reaches(server endpoint.Endpoint, listen string) bool {
	if path, ok := strings.CutPrefix(listen, UnixPrefix); ok {
		return server.Network == "unix" && server.Address == path
	}
	if server.Network != "tcp" || !samePort(server.Address, listen) {
		return false
	}
	serverHost, _, _ := net.SplitHostPort(server.Address)
	listenHost, _, _ := net.SplitHostPort(listen)
	if !EveryAddress(listenHost) {
		return true // samePort: the hosts are equal
	}
	ip, _ := netip.ParseAddr(endpoint.CanonicalHost(serverHost))
	return EveryAddress(serverHost) || ip.IsLoopback()
}
