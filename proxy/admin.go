package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/console"
)

// adminServer answers operators and machines over HTTP. /metrics is for Prometheus.
// /healthz says that the process lives. /readyz says whether locks can be decided, and
// which masters do not vote. Package console serves the page and the JSON. POST /reload
// reloads the configuration. It is refused from other machines, because it needs no
// password. Probes may ask for the first three by any name; the rest is guarded.
type adminServer struct {
	http http.Server
	page *console.Page
}

// moveKeysParameter is the query parameter with which POST /reload may move keys.
const moveKeysParameter = "move-keys"

// newAdminServer calls ready for each /readyz and reload for each /reload. The client gets
// the error of reload as the reason. The context of reload ends when the client leaves. settings
// returns the active configuration.
func newAdminServer(gatherer prometheus.Gatherer, ready func() readiness, reload func(ctx context.Context, moveKeys bool) (report string, err error), shown *console.Page, settings func() *config.Config) *adminServer {
	mux, inner := http.NewServeMux(), http.NewServeMux()
	mux.Handle("/", guarded(inner, settings))
	shown.Register(inner)
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		now := ready()
		if !now.ready {
			http.Error(w, now.text, http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, now.text+"\n")
	})
	inner.HandleFunc("POST /reload", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !fromThisMachine(r):
			http.Error(w, "a reload must be requested from the machine of the proxy", http.StatusForbidden)
			return
		case r.Header.Get(reloadHeader) == "":
			http.Error(w, "a reload needs the header "+reloadHeader+": 1; redlock-proxy -reload sends it", http.StatusForbidden)
			return
		}
		report, err := reload(r.Context(), r.URL.Query().Has(moveKeysParameter))
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		io.WriteString(w, report+"\n")
	})
	return &adminServer{page: shown, http: http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}}
}

// serve answers requests until close, and then returns nil. It closes the listener.
func (a *adminServer) serve(listener net.Listener) error {
	defer a.page.Close()
	if err := a.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// close lets running requests finish until ctx ends, and then closes their connections.
// Those of the page's events end at once.
func (a *adminServer) close(ctx context.Context) {
	a.page.Close()
	if a.http.Shutdown(ctx) != nil {
		a.http.Close()
	}
}

// fromThisMachine reports whether the client is on this machine: its address is a loopback
// address, or equal to the local end's.
func fromThisMachine(r *http.Request) bool {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	if remote.Addr().Unmap().IsLoopback() {
		return true
	}
	address, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if address == nil {
		return false
	}
	local, err := netip.ParseAddrPort(address.String())
	return err == nil && local.Addr().Unmap() == remote.Addr().Unmap()
}
