package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// adminServer answers operators and machines over HTTP: /metrics, /healthz
// (the process lives) and /readyz (it can decide locks; if not, why).
type adminServer struct {
	http http.Server
}

// newAdminServer asks ready with each /readyz; its error is the reason given.
func newAdminServer(gatherer prometheus.Gatherer, ready func() error) *adminServer {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "ok\n")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ready\n")
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

// healthcheckTimeout is shorter than a container engine's usual patience.
const healthcheckTimeout = 3 * time.Second

// Healthcheck asks the process that runs with this configuration whether it
// lives. nil is yes.
func Healthcheck(ctx context.Context, cfg *Config) error {
	if cfg.Admin == "" {
		return errors.New("the admin address is empty in the configuration, so nothing can be asked")
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(cfg.Admin)
	if err != nil {
		return err
	}
	// 0.0.0.0 is where to listen, not where to dial.
	if host == "::" {
		host = "::1"
	} else if everyAddress(host) {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, port) + "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true} // no proxy of the environment in between
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}
