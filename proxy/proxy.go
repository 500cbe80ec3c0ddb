package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/embedded"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/inspect"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/redlock"
)

const (
	// drainPatience is how long clients may take to finish when the process
	// is told to end; with closePatience it stays below the 10 s after which
	// container engines kill.
	drainPatience = 8 * time.Second
	// closePatience is for the undos that masters have not answered yet.
	closePatience = time.Second
	// reloadEnds is how long a reload under way may take to notice that the
	// process ends. One that hangs in a file system is not waited for.
	reloadEnds = 100 * time.Millisecond
)

// Proxy is the whole of it: it listens, and Serve must be called once, which
// also closes everything.
type Proxy struct {
	current     *config.Active
	log         *slog.Logger
	level       *slog.LevelVar // of log
	metrics     *metrics.Metrics
	embedded    []*embedded.Server
	toys        toys
	listener    net.Listener // nil: clients come only over TLS
	tlsListener net.Listener // nil: none do
	web         net.Listener // nil: no admin server
	locker      *redlock.Locker
	locks       *lockPlane
	survey      *inspect.Survey
	hazards     []inspect.Hazard // of the start
	server      *proxyServer
	admin       *adminServer
	draining    atomic.Bool
	reloading   chan struct{}   // holds one element while a reload runs
	lives       context.Context // until the proxy drains
	drains      context.CancelFunc
}

// New listens, starts the embedded servers that cfg asks for, and asks the
// others what they are, for 2 s at most if one does not answer. A server that
// is away is no error, one that cannot hold locks is. The metrics are
// registered with reg. A reload sets level, which is log's.
func New(cfg *config.Config, log *slog.Logger, level *slog.LevelVar, reg *prometheus.Registry) (*Proxy, error) {
	p := &Proxy{log: log, level: level, reloading: make(chan struct{}, 1)}
	p.lives, p.drains = context.WithCancel(context.Background())
	if err := p.build(cfg, reg); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// Banner says in plain words what runs here and what to type next.
func (p *Proxy) Banner() string {
	admin := ""
	if p.web != nil {
		admin = listenAddress(p.web)
	}
	return banner(p.current.Load().Config, p.addresses(), admin, p.newSetUntil(time.Now()))
}

// newSetUntil is when locks can be granted in a new set; zero: there is none. One
// that is about to begin takes as long as one that has just begun.
func (p *Proxy) newSetUntil(now time.Time) time.Time {
	cfg, status := p.current.Load().Config, p.locker.Status()
	if status.Set == "" && p.survey.NoMarkers() && !cfg.NewSet {
		return now.Add(cfg.RestartDelay + time.Second)
	}
	return status.NewUntil
}

// listeners are those for clients.
func (p *Proxy) listeners() []net.Listener {
	return slices.DeleteFunc([]net.Listener{p.listener, p.tlsListener}, func(l net.Listener) bool { return l == nil })
}

// addresses are where clients connect, the plain one first.
func (p *Proxy) addresses() string {
	var list []string
	if p.listener != nil {
		list = append(list, listenAddress(p.listener))
	}
	if p.tlsListener != nil {
		list = append(list, listenAddress(p.tlsListener)+endpoint.TLSMark)
	}
	return strings.Join(list, ", ")
}

// Serve serves until ctx ends, then lets every client finish the commands it
// has sent, for 8 s at most, and closes everything. It returns an error only
// if something else than ctx ended it.
func (p *Proxy) Serve(ctx context.Context) error {
	defer p.close()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	failures := make(chan error, 3)
	for _, listener := range p.listeners() {
		running.Go(func() {
			if err := p.server.serve(listener); err != nil {
				failures <- fmt.Errorf("no more clients can be accepted: %w", err)
			}
		})
	}
	if p.admin != nil {
		running.Go(func() {
			if err := p.admin.serve(p.web); err != nil {
				failures <- fmt.Errorf("the admin server ended: %w", err)
			}
		})
	}
	p.survey.Report(p.hazards)
	cfg := p.current.Load().Config
	p.log.Info("serving", "listen", p.addresses(), "masters", cfg.Masters.Count(), "upstream", cfg.Upstream.String(), "demo", len(cfg.Toys()) > 0)
	running.Go(func() { p.survey.Run(work, p.hazards) })
	quorum := &quorumWatch{status: p.locker.Status, log: p.log}
	running.Go(func() { quorum.run(p.lives) })
	var failure error
	select {
	case <-ctx.Done():
		p.log.Info("draining", "patience", drainPatience.String())
	case failure = <-failures:
	}
	p.drain(work)
	stop()
	running.Wait()
	p.log.Info("ended")
	return failure
}

// drain ends the parts in the order in which they need each other. The admin
// server is last, so that /readyz tells why.
func (p *Proxy) drain(ctx context.Context) {
	p.draining.Store(true)
	p.drains()
	patience, cancel := context.WithTimeout(ctx, drainPatience)
	if err := p.server.shutdown(patience); err != nil {
		p.log.Warn("clients that had not finished were cut off")
	}
	cancel()
	select {
	case p.reloading <- struct{}{}:
	case <-time.After(reloadEnds):
	}
	patience, cancel = context.WithTimeout(ctx, closePatience)
	defer cancel()
	p.locker.Close(patience)
	if p.admin != nil {
		p.admin.close(patience)
	}
}

// close ends what is left in any state of the building; closing twice is fine.
func (p *Proxy) close() {
	p.drains()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if p.server != nil {
		p.server.shutdown(ended)
	}
	if p.locker != nil {
		p.locker.Close(ended)
	}
	for _, listener := range []net.Listener{p.listener, p.tlsListener, p.web} {
		if listener != nil {
			listener.Close()
		}
	}
	var closing sync.WaitGroup
	for _, server := range p.embedded {
		closing.Go(server.Close)
	}
	closing.Wait()
}
