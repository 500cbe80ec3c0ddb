package proxy

import (
	"net"
	"net/http"
	"net/netip"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
)

// reloadHeader must be in POST /reload, with any value. A web page cannot make a browser
// send it to another origin.
const reloadHeader = "Redlock-Reload"

// guarded answers requests as next does, but for those that a web page may have made a browser
// send: requests for a name that an attacker may have led to this address (DNS rebinding), and
// changes that another origin asks for.
func guarded(next http.Handler, settings func() *config.Config) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !mayName(r.Host, settings()) {
			http.Error(w, "the admin address does not answer to this name; use an IP address or localhost, or list the name in admin_hosts", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// mayName tells whether a request for this host, as the Host header has it, is answered. Nobody
// can lead an IP address or localhost elsewhere. A client that is no browser may name no host.
func mayName(host string, cfg *config.Config) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = endpoint.CanonicalHost(host)
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return true
	}
	listens, _, _ := net.SplitHostPort(cfg.Admin)
	for _, name := range append([]string{listens}, cfg.AdminHosts...) {
		if host == endpoint.CanonicalHost(name) {
			return true
		}
	}
	return false
}
