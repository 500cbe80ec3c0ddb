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
	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/embedded"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/inspect"
	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
)

const (
	// drainPatience bounds the time in which clients may finish when the process is asked
	// to end. Together with closePatience it is below 10 s, after which container engines
	// kill the process.
	drainPatience = 8 * time.Second
	// leavePatience bounds the part of it in which clients go on as before, if other processes
	// take the new ones (reuse_port). Short sessions end in that time by themselves, and nobody
	// who has just connected is sent away.
	leavePatience = time.Second
	// closePatience bounds the wait for undos that masters have not answered yet.
	closePatience = time.Second
	// reloadEnds bounds the wait for a running reload when the process ends. A reload that
	// hangs in the file system cannot delay the end.
	reloadEnds = 100 * time.Millisecond
)

// Proxy is the whole proxy. New makes it and opens its addresses. Serve must be called
// once, and closes everything before it returns.
type Proxy struct {
	current     *config.Active
	log         *slog.Logger
	level       *slog.LevelVar // the level of log; a reload sets it
	metrics     *events.Metrics
	observer    redlock.Observer // of the masters: the journal, and the metrics behind it
	embedded    []*embedded.Server
	embeddedAt  embeddedServers
	listener    net.Listener // nil: clients connect only over TLS
	tlsListener net.Listener // nil: no client connects over TLS
	web         net.Listener // nil: no admin server
	locker      *redlock.Locker
	leases      *lease.Keeper
	locks       *lock.Plane
	scripts     *lock.Scripts
	journal     *events.Journal
	clients     *handler.Service
	unruled     *unruled.Watch
	operators   *console.Console
	monitor     *inspect.Monitor
	blank       bool       // no master had a marker at the start
	loop        *loop.Loop // runs the sessions, and reads and writes all connections
	endLoop     func()     // ends it and waits for it
	upstream    *upstream.Pool
	admin       *adminServer
	draining    atomic.Bool
	reloading   chan struct{}   // holds one element while a reload runs
	lives       context.Context // ends when the proxy starts to drain
	drains      context.CancelFunc
}

// New opens the addresses, starts the embedded servers that cfg asks for, and asks the
// other servers for their role and settings. It waits at most 2 s for a server that does
// not answer. An unreachable server is no error. A server that cannot hold locks is one.
// New registers the metrics with reg. level must be the level of log; a reload sets it.
func New(cfg *config.Config, log *slog.Logger, level *slog.LevelVar, reg *prometheus.Registry) (*Proxy, error) {
	p := &Proxy{log: log, level: level, journal: events.New(log), reloading: make(chan struct{}, 1)}
	p.lives, p.drains = context.WithCancel(context.Background())
	if err := p.build(cfg, reg); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// Banner returns a text for a person: what this process serves, and commands to try.
func (p *Proxy) Banner() string {
	admin := ""
	if p.web != nil {
		admin = listenAddress(p.web)
	}
	cfg := p.current.Load().Config
	begins := time.Now().Add(cfg.RestartDelay + time.Second)
	return banner(cfg, p.addresses(), admin, newSetUntil(p.locker.Status(), p.blank && !cfg.NewSet, begins))
}

// newSetUntil returns the time when the masters of a new set can grant locks. It returns zero if the
// set is not new. blank tells whether no master had a marker at the start. Such a set may not have
// begun yet, and its time not be known. Then ifItBegins is the time.
func newSetUntil(status redlock.Status, blank bool, ifItBegins time.Time) time.Time {
	if blank && status.NewUntil.IsZero() && !status.Ready() {
		return ifItBegins
	}
	return status.NewUntil
}

// listeners returns the listeners for clients.
func (p *Proxy) listeners() []net.Listener {
	return slices.DeleteFunc([]net.Listener{p.listener, p.tlsListener}, func(l net.Listener) bool { return l == nil })
}

// addresses returns the addresses for clients, the plain one first.
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

// Serve serves until ctx ends. Then it lets every client finish the commands that it has
// sent, for 8 s at most, and closes everything. It returns an error only if it ended for
// another reason than ctx.
func (p *Proxy) Serve(ctx context.Context) error {
	defer p.close()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	failures := make(chan error, 3)
	for _, listener := range p.listeners() {
		running.Go(func() {
			if err := p.clients.Serve(listener); err != nil {
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
	cfg := p.current.Load().Config
	p.log.Info("serving", "listen", p.addresses(), "masters", cfg.Masters.Count(), "upstream", cfg.Upstream.String(), "demo", len(cfg.EmbeddedServers()) > 0)
	running.Go(func() { p.monitor.Run(work) })
	running.Go(func() { p.journal.Watch(p.lives, p.locker.Status) })
	var failure error
	select {
	case <-ctx.Done():
		p.log.Info("draining: clients may finish what they have sent", "for", drainPatience.String())
	case failure = <-failures:
	}
	p.drain(work)
	stop()
	running.Wait()
	p.log.Info("ended")
	return failure
}

// drain ends the parts in the order of their dependencies. The admin server is last, so
// that /readyz can say that the proxy drains.
func (p *Proxy) drain(ctx context.Context) {
	p.draining.Store(true)
	patience, cancel := context.WithTimeout(ctx, drainPatience)
	if p.current.Load().ReusePort {
		// The kernel gives the clients that nobody has accepted yet to the other processes.
		p.clients.StopAccepting()
		leave, cancel := context.WithTimeout(patience, leavePatience)
		p.clients.AwaitLeaving(leave)
		cancel()
	}
	p.drains()
	if err := p.clients.Shutdown(patience); err != nil {
		p.log.Warn("drain timed out, the remaining clients were disconnected; check that they connect to another proxy")
	}
	cancel()
	p.upstream.Close()
	select {
	case p.reloading <- struct{}{}:
	case <-time.After(reloadEnds):
	}
	patience, cancel = context.WithTimeout(ctx, closePatience)
	defer cancel()
	p.leases.Close(patience)
	p.locker.Close(patience)
	if p.admin != nil {
		p.admin.close(patience)
	}
}

// close ends everything that build made and that still runs. It may be called twice, and
// after a build that failed.
func (p *Proxy) close() {
	p.drains()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if p.clients != nil {
		p.clients.Shutdown(ended)
	}
	if p.upstream != nil {
		p.upstream.Close()
	}
	if p.leases != nil {
		p.leases.Close(ended)
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
	if p.endLoop != nil {
		p.endLoop()
	}
}
