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
)

// adminServer answers operators and machines over HTTP: /metrics, /healthz
// (the process lives), /readyz (whether it can decide locks, and who does not
// vote), and POST /reload, to this machine only, for there is no password.
type adminServer struct {
	http http.Server
}

// moveKeysParameter is for a POST /reload that may move keys.
const moveKeysParameter = "move-keys"

// newAdminServer asks ready with each /readyz, and reload with each /reload,
// whose error is the reason given. A reload ends early with who asked for it.
func newAdminServer(gatherer prometheus.Gatherer, ready func() readiness, reload func(ctx context.Context, moveKeys bool) (report string, err error)) *adminServer {
	mux := http.NewServeMux()
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
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, r *http.Request) {
		if !fromThisMachine(r) {
			http.Error(w, "a reload can be asked for on the proxy's own machine only", http.StatusForbidden)
			return
		}
		report, err := reload(r.Context(), r.URL.Query().Has(moveKeysParameter))
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
			return
		}
		io.WriteString(w, report+"\n")
	})
	return &adminServer{http: http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}}
}

// serve answers until close; it owns the listener. A close is no error.
func (a *adminServer) serve(listener net.Listener) error {
	if err := a.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// close lets answers under way finish until ctx ends, then cuts them.
func (a *adminServer) close(ctx context.Context) {
	if a.http.Shutdown(ctx) != nil {
		a.http.Close()
	}
}

// fromThisMachine: the two ends of a connection have one address, or loopback's.
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
