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

// check finds the mistakes that no single value shows.
func (r *configReader) check() {
	if !r.has("upstream") {
		r.fail("upstream", "is missing; write the URL of your Redis, none, or embedded to try it out")
	}
	if !r.has("masters") && !(r.cfg.Learns() && r.sound("locks")) {
		r.fail("masters", "is missing; list the URLs of the lock masters, or write embedded to try it out")
	}
	if r.cfg.Learns() && r.sound("locks") && r.cfg.Upstream.Kind == UpstreamNone && r.has("upstream") {
		r.fail("locks", "cannot be learned without an upstream, which would serve the keys; write - match: \"*\", because every key is a lock there")
	}
	r.addresses()
	r.masters()
	r.tls()
	r.users()
	r.durations()
	for i, glob := range r.cfg.Ignore {
		if key := elementKey("ignore", i); glob == "" && r.sound(key) {
			r.fail(key, "is empty; write a Redis glob over the whole key, such as \"idempotency:*\"")
		}
	}
}

func (r *configReader) durations() {
	cfg := r.cfg
	if least := redlock.LeastRestartDelay(cfg.MasterTimeout, cfg.ClockDrift); cfg.RestartDelay < least {
		r.failAt(cmp.Or(r.places["restart_delay"], r.places["master_timeout"], r.places["clock_drift"]), "restart_delay", "%s is too short; it must be %s at least with master_timeout %s and clock_drift %v, because a proxy may take that long to write a master's marker, and the master must not vote before that",
			ShortDuration(cfg.RestartDelay), ShortDuration(least), ShortDuration(cfg.MasterTimeout), cfg.ClockDrift)
	}
	if cfg.MaxQuarantine < cfg.RestartDelay {
		r.failAt(cmp.Or(r.places["max_quarantine"], r.places["restart_delay"]), "max_quarantine", "%s is shorter than restart_delay (%s); raise the one or lower the other",
			ShortDuration(cfg.MaxQuarantine), ShortDuration(cfg.RestartDelay))
	}
	for i, rule := range cfg.Locks {
		if least := redlock.LeastTTL(cfg.ClockDrift); rule.DefaultTTL > 0 && rule.DefaultTTL < least {
			r.fail(elementKey("locks", i)+".default_ttl", "%s is too short, and no lock would ever be granted; it must be %s at least with clock_drift %v, and well above the time in which the masters answer",
				ShortDuration(rule.DefaultTTL), ShortDuration(least), cfg.ClockDrift)
		}
	}
}

func (r *configReader) addresses() {
	cfg := r.cfg
	for i, name := range cfg.AdminHosts {
		if name == "" || strings.ContainsAny(name, ":/* ") {
			r.fail(elementKey("admin_hosts", i), "is not a host name; write each name in full, without a scheme and a port, such as locks.example.com")
		}
	}
	if cfg.Listen == "" && cfg.TLS.Listen == "" && r.sound("listen") && r.sound("tls") {
		r.fail("listen", "is empty and tls.listen is not set, so no client could connect")
	}
	if samePort(cfg.TLS.Listen, cfg.Listen) {
		r.fail("tls.listen", "%s is the plain listen address; the two need different ports", cfg.TLS.Listen)
	}
	if cfg.ReusePort && strings.HasPrefix(cfg.Listen, UnixPrefix) {
		r.fail("reuse_port", "cannot be used with the unix: socket in listen, which one process has for itself; give each process a listen address of its own, or use a TCP address")
	}
	for _, listen := range []string{cfg.Listen, cfg.TLS.Listen} {
		if listen != "" {
			r.listens(listen)
		}
	}
}

// listens reports settings that collide with an address on which the proxy listens.
func (r *configReader) listens(listen string) {
	cfg := r.cfg
	if cfg.Admin != "" && samePort(cfg.Admin, listen) {
		r.fail("admin", "%s is the listen address; the two need different ports", cfg.Admin)
	}
	if cfg.Upstream.Kind == UpstreamServer && reaches(cfg.Upstream.Server, listen) {
		r.fail("upstream", "%s is the proxy's own listen address", cfg.Upstream.Server.Name)
	}
	for i, master := range cfg.Masters.Servers {
		if reaches(master, listen) {
			r.fail(elementKey("masters", i), "%s is the proxy's own listen address", master.Name)
		}
	}
}

func (r *configReader) masters() {
	for i, server := range r.cfg.Masters.Servers {
		key := elementKey("masters", i)
		if !r.sound(key) {
			continue
		}
		if server.DB != 0 {
			r.fail(key, "a master's URL must not name a database: a lock in database n lives in database n of every master")
		}
		if at := slices.IndexFunc(r.cfg.Masters.Servers[:i], server.Same); at >= 0 {
			r.fail(key, "%s is the same server as %s on line %d; one server has one vote", server.Name, r.cfg.Masters.Servers[at].Name, r.places[elementKey("masters", at)])
		}
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
