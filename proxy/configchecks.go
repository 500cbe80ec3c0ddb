package proxy

import (
	"net"
	"strings"
)

// checkTogether finds what no single key shows.
func (r *configReader) checkTogether() {
	cfg := r.cfg
	if _, ok := r.lines["upstream"]; !ok {
		r.fail(0, "upstream", "is missing; write the URL of your Redis, none, or embedded to try it out")
	}
	if _, ok := r.lines["masters"]; !ok {
		r.fail(0, "masters", "is missing; list the URLs of the lock masters, or write embedded to try it out")
	}
	if cfg.Listen == "" && cfg.TLS.Listen == "" && len(r.problems) == 0 {
		r.fail(r.lines["listen"], "listen", "is empty and there is no tls.listen, so that no client could connect")
	}
	if samePort(cfg.TLS.Listen, cfg.Listen) {
		r.fail(r.places["tls.listen"], "tls.listen", "%s is the plain listen address; the two need different ports", cfg.TLS.Listen)
	}
	for _, listen := range []string{cfg.Listen, cfg.TLS.Listen} {
		if listen != "" {
			r.checkListen(listen)
		}
	}
	r.checkUsers()
	if cfg.RestartDelay <= cfg.MasterTimeout {
		r.fail(r.lines["restart_delay"], "restart_delay", "%s is not longer than master_timeout (%s)",
			shortDuration(cfg.RestartDelay), shortDuration(cfg.MasterTimeout))
	}
	if cfg.MaxQuarantine < cfg.RestartDelay {
		r.fail(r.lines["max_quarantine"], "max_quarantine", "%s is shorter than restart_delay (%s)",
			shortDuration(cfg.MaxQuarantine), shortDuration(cfg.RestartDelay))
	}
}

// checkListen finds an address that the proxy listens on where another one
// stands.
func (r *configReader) checkListen(listen string) {
	cfg := r.cfg
	if cfg.Admin != "" && samePort(cfg.Admin, listen) {
		r.fail(r.lines["admin"], "admin", "%s is the listen address; the two need different ports", cfg.Admin)
	}
	if cfg.Upstream.Kind == UpstreamServer && reaches(cfg.Upstream.server, listen) {
		r.fail(r.lines["upstream"], "upstream", "%s is the proxy's own listen address", cfg.Upstream.server.name)
	}
	for i, master := range cfg.Masters.servers {
		if reaches(master, listen) {
			r.fail(r.masterLines[i], r.masterKeys[i], "%s is the proxy's own listen address", master.name)
		}
	}
}

// samePort tells whether two addresses to listen on would collide.
func samePort(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(canonicalAddress(a))
	hostB, portB, errB := net.SplitHostPort(canonicalAddress(b))
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return hostA == hostB || everyAddress(hostA) || everyAddress(hostB)
}

func everyAddress(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// reaches tells whether a server's address is, as far as writing shows, the
// address the proxy listens on: it would talk to itself.
func reaches(server endpoint, listen string) bool {
	if path, ok := strings.CutPrefix(listen, unixPrefix); ok {
		return server.network == "unix" && server.address == path
	}
	if server.network != "tcp" || !samePort(server.address, listen) {
		return false
	}
	serverHost, _, _ := net.SplitHostPort(server.address)
	listenHost, _, _ := net.SplitHostPort(listen)
	if !everyAddress(listenHost) {
		return true // samePort: the hosts are equal
	}
	ip := net.ParseIP(serverHost)
	return everyAddress(serverHost) || ip != nil && ip.IsLoopback()
}
