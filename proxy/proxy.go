package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// drainPatience is how long clients may take to finish when the process
	// is told to end; with closePatience it stays below the 10 s after which
	// container engines kill.
	drainPatience = 8 * time.Second
	// closePatience is for the undos that masters have not answered yet.
	closePatience = time.Second
	// scriptCacheBytes bounds the script texts remembered for all clients.
	scriptCacheBytes = 64 << 20
)

// Proxy is the whole of it: it listens, and Serve must be called once, which
// also closes everything.
type Proxy struct {
	cfg      *Config
	log      *slog.Logger
	embedded []*embeddedServer
	listener net.Listener
	web      net.Listener // nil: no admin server
	locker   *redlock.Locker
	locks    *lockPlane
	survey   *survey
	hazards  []hazard // of the start
	server   *proxyServer
	admin    *adminServer
	draining atomic.Bool
}

// New listens, starts the embedded servers that cfg asks for, and asks the
// others what they are, for 2 s at most if one does not answer. A server that
// is away is no error, one that cannot hold locks is. The metrics are
// registered with reg.
func New(cfg *Config, log *slog.Logger, reg *prometheus.Registry) (*Proxy, error) {
	p := &Proxy{cfg: cfg, log: log}
	if err := p.build(reg); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *Proxy) build(reg *prometheus.Registry) error {
	metrics, err := newMetrics(reg)
	if err != nil {
		return err
	}
	if p.listener, err = listen("listen", p.cfg.Listen); err != nil {
		return err
	}
	if p.cfg.Admin != "" {
		if p.web, err = listen("admin", p.cfg.Admin); err != nil {
			return err
		}
		p.admin = newAdminServer(reg, p.ready)
	}
	upstream, masters, err := p.servers()
	if err != nil {
		return err
	}
	p.survey = newSurvey(p.cfg, p.log)
	p.hazards = p.survey.look(context.Background())
	if err := refusedHazards(p.hazards); err != nil {
		return err
	}
	p.locker, err = redlock.New(redlock.Config{
		Masters:       lockMasters(masters, p.cfg.Masters.Embedded),
		MasterTimeout: p.cfg.MasterTimeout,
		Retry:         redlock.Retry{Count: p.cfg.Retry.Count, Delay: p.cfg.Retry.Delay},
		ClockDrift:    p.cfg.ClockDrift,
		RestartDelay:  p.cfg.RestartDelay,
		Log:           p.log,
		Observer:      metrics,
	})
	if err != nil {
		return err
	}
	if err := watchMasters(reg, p.locker.Reachable); err != nil {
		return err
	}
	scripts := newScriptCache(scriptCacheBytes)
	p.locks = newLockPlane(p.locker, p.cfg.Locks, scripts, metrics, p.log)
	limits := redisLimits
	limits.bulk = p.cfg.Limits.Bulk
	settings := serverConfig{
		clients:     p.cfg.Limits.Clients,
		idle:        p.cfg.Limits.Idle,
		guard:       limits,
		password:    string(p.cfg.Auth.Password),
		databases:   p.survey.databases,
		version:     p.survey.version,
		redlockInfo: p.appendInfo,
		killScripts: func(ctx context.Context) bool { return killScripts(ctx, masters) },
		router:      p.survey.router,
		locks:       p.locks,
		scripts:     scripts,
		metrics:     metrics,
		log:         p.log,
	}
	if upstream != nil {
		settings.dialUpstream = upstream.dial
		settings.upstream = upstreamLogin{user: upstream.username, password: upstream.password, db: upstream.db}
	}
	p.server = newServer(settings)
	return nil
}

// servers says where the upstream, if any, and the masters are, and starts
// those that are embedded.
func (p *Proxy) servers() (upstream *endpoint, masters []endpoint, err error) {
	start := func(name string) (endpoint, error) {
		server, err := startEmbedded(name)
		if err != nil {
			return endpoint{}, err
		}
		p.embedded = append(p.embedded, server)
		return server.endpoint(), nil
	}
	switch p.cfg.Upstream.Kind {
	case UpstreamServer:
		upstream = &p.cfg.Upstream.server
	case UpstreamEmbedded:
		server, err := start("embedded upstream")
		if err != nil {
			return nil, nil, err
		}
		upstream = &server
	}
	if !p.cfg.Masters.Embedded {
		return upstream, p.cfg.Masters.servers, nil
	}
	for i := range embeddedMasters {
		server, err := start("embedded-" + strconv.Itoa(i+1))
		if err != nil {
			return nil, nil, err
		}
		masters = append(masters, server)
	}
	return upstream, masters, nil
}

func lockMasters(servers []endpoint, embedded bool) []redlock.Master {
	masters := make([]redlock.Master, len(servers))
	for i, server := range servers {
		masters[i] = redlock.Master{
			Name: server.name, Dial: server.dial,
			Username: server.username, Password: server.password, Embedded: embedded,
		}
	}
	return masters
}

func refusedHazards(hazards []hazard) error {
	var refused []error
	for _, hazard := range hazards {
		if hazard.level == hazardRefused {
			refused = append(refused, errors.New(hazard.text))
		}
	}
	return errors.Join(refused...)
}

// Banner says in plain words what runs here and what to type next.
func (p *Proxy) Banner() string {
	admin := ""
	if p.web != nil {
		admin = listenAddress(p.web)
	}
	return banner(p.cfg, listenAddress(p.listener), admin)
}

// Serve serves until ctx ends, then lets every client finish the commands it
// has sent, for 8 s at most, and closes everything. It returns an error only
// if something else than ctx ended it.
func (p *Proxy) Serve(ctx context.Context) error {
	defer p.close()
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	failures := make(chan error, 2)
	running.Go(func() {
		if err := p.server.serve(p.listener); err != nil {
			failures <- fmt.Errorf("no more clients can be accepted: %w", err)
		}
	})
	if p.admin != nil {
		running.Go(func() {
			if err := p.admin.serve(p.web); err != nil {
				failures <- fmt.Errorf("the admin server ended: %w", err)
			}
		})
	}
	p.survey.report(p.hazards)
	p.log.Info("serving", "listen", listenAddress(p.listener), "masters", p.cfg.Masters.count(), "upstream", p.cfg.Upstream.String())
	running.Go(func() { p.survey.run(work, p.hazards) })
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
	patience, cancel := context.WithTimeout(ctx, drainPatience)
	if err := p.server.shutdown(patience); err != nil {
		p.log.Warn("clients that had not finished were cut off")
	}
	cancel()
	patience, cancel = context.WithTimeout(ctx, closePatience)
	defer cancel()
	p.locker.Close(patience)
	if p.admin != nil {
		p.admin.close(patience)
	}
}

// close ends what is left in any state of the building; closing twice is fine.
func (p *Proxy) close() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if p.server != nil {
		p.server.shutdown(ended)
	}
	if p.locker != nil {
		p.locker.Close(ended)
	}
	for _, listener := range []net.Listener{p.listener, p.web} {
		if listener != nil {
			listener.Close()
		}
	}
	var closing sync.WaitGroup
	for _, server := range p.embedded {
		closing.Go(server.close)
	}
	closing.Wait()
}
