package proxy

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
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
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
)

// embeddedServers holds the addresses of the embedded servers. A part that is not embedded is nil.
type embeddedServers struct {
	upstream *endpoint.Endpoint
	masters  []endpoint.Endpoint
}

// build makes the parts in the order of their dependencies. If it fails, the caller must
// call close, which ends the parts that build has made.
func (p *Proxy) build(cfg *config.Config, reg *prometheus.Registry) error {
	var err error
	if p.loop, p.endLoop, err = loop.Start(p.log); err != nil {
		return fmt.Errorf("no event loop: %w", err)
	}
	if p.metrics, err = newMetrics(reg); err != nil {
		return err
	}
	p.observer = p.journal.Observer(p.metrics)
	if !cfg.ReusePort {
		if err := p.listen(cfg); err != nil {
			return err
		}
	}
	if cfg.Admin != "" {
		if p.web, err = listen("admin", cfg.Admin, false); err != nil {
			return err
		}
	}
	if err := p.startEmbedded(cfg); err != nil {
		return err
	}
	upstream, masters := p.endpoints(cfg)
	p.current = config.NewActive(config.NewSettings(cfg, upstream, masters, &route.Router{Table: route.Builtin(), Rules: cfg.Locks}))
	answers := inspect.Ask(context.Background(), cfg)
	if err := inspect.Refused(answers.Hazards()); err != nil {
		return err
	}
	p.blank = answers.NoMarkers()
	p.monitor = inspect.NewMonitor(context.Background(), p.current, p.metrics, p.log, answers)
	if p.locker, err = redlock.New(p.lockerConfig(cfg, masters)); err != nil {
		return err
	}
	p.leases = lease.New(lease.Config{Locker: p.locker, Rule: p.leaseRule, Limits: p.leaseLimits, Log: p.log})
	p.scripts = lock.NewScripts(int(cfg.Limits.Scripts), func() { p.metrics.LimitReached(string(config.LimitScripts)) })
	p.scripts.SetLimits(int(cfg.Limits.Scripts), int(cfg.Limits.LockCommand))
	starting := afterStart(p.lives, p.locker.Status)
	p.locks = lock.New(lock.Config{
		Locker:        p.locker,
		Router:        func() *route.Router { return p.current.Load().Router },
		MaxQuarantine: func() time.Duration { return p.current.Load().MaxQuarantine },
		MaxReply:      func() int64 { return p.current.Load().Limits.LockReply },
		Scripts:       p.scripts,
		Meter:         p.metrics,
		Log:           p.log,
		Starting:      starting, Draining: p.lives.Done(),
		Journal: p.journal, IsSlow: p.isSlow, Leases: p.leases,
		Changes: lock.Changes{
			Available: p.locker.TrackingAvailable,
			Subscribe: func(changed func(key []byte)) lock.Tracker {
				return p.locker.Subscriber(func(e redlock.Event) {
					if e.Kind == redlock.EventChanged {
						changed(e.Key)
					}
				})
			},
		},
	})
	p.unruled = unruled.New(p.log)
	p.operators = console.New(console.Config{
		Active:  p.current,
		Masters: p.masters,
		Ready:   func() string { return p.readiness().text },
		Journal: p.journal,
		Clients: func() []events.ClientInfo { return p.clients.Known() },
		Reader:  p.locker.Reader(),
		Locks:   p.locks,
		Unruled: p.unruled,
		Log:     p.log,

		Version: Version(), Draining: p.draining.Load, Notes: p.notes,
		Upstream: func() (problem string) {
			up, _ := p.monitor.Upstream()
			return up.Problem
		},
	})
	env := session.NewEnv(p.current, p.metrics, p.log, p.loop)
	p.upstream = env.Upstream
	p.clients = handler.New(env, handler.Config{
		Databases:       p.monitor.Databases,
		Version:         p.monitor.Version,
		RedlockInfo:     p.appendInfo,
		UpstreamAnswers: p.monitor.Answers,
		Locks:           p.locks,
		Leases:          p.leases,
		Subscribes:      func(onEvent func(redlock.Event)) pubsub.Source { return p.locker.Subscriber(onEvent) },
		Scripts:         p.scripts,
		Console:         p.operators,
		Unruled:         p.unruled,
	})
	if err := reg.Register(events.Readings{
		Masters: p.locker.Status, Upstream: p.upstreamUp, Moving: p.movingRules, Leases: p.leases.Counts,
		Shared: p.upstream.Counts, Buffered: env.Budget.InUse,
		Unruled: func() (int, int64) { return len(p.operators.UnruledLocks()), p.unruled.Uses() },
	}); err != nil {
		return err
	}
	p.metrics.ShowSettings(shownOf(cfg, time.Now()))
	if p.web != nil {
		p.admin = newAdminServer(reg, p.readiness, p.Reload, console.NewPage(p.operators), func() *config.Config { return p.current.Load().Config })
		p.admin.http.ErrorLog = handler.HTTPErrors(p.log)
	}
	if cfg.ReusePort {
		<-starting // until then the other processes take all clients
		return p.listen(cfg)
	}
	return nil
}

// listen opens the addresses for clients: the plain one, the one for TLS, or both.
func (p *Proxy) listen(cfg *config.Config) (err error) {
	if cfg.Listen != "" {
		if p.listener, err = listen("listen", cfg.Listen, cfg.ReusePort); err != nil {
			return err
		}
		if path, isUnix := strings.CutPrefix(cfg.Listen, config.UnixPrefix); isUnix {
			if err := os.Chmod(path, cfg.UnixPermissions); err != nil {
				return fmt.Errorf("cannot give the socket its unix_permissions: %w", err)
			}
		}
	}
	if cfg.TLS.Listen == "" {
		return nil
	}
	listener, err := listen("tls.listen", cfg.TLS.Listen, cfg.ReusePort)
	if err != nil {
		return err
	}
	p.tlsListener = handler.OverTLS(listener, func() *endpoint.TLS { return p.current.Load().TLS.Files })
	return nil
}

// lockerConfig translates cfg for package redlock.
func (p *Proxy) lockerConfig(cfg *config.Config, masters []endpoint.Endpoint) redlock.Config {
	return redlock.Config{
		Loop:          p.loop,
		Masters:       lockMasters(masters, cfg.Masters.Embedded),
		MasterTimeout: cfg.MasterTimeout,
		Retry:         redlock.Retry{Count: cfg.Retry.Count, Delay: cfg.Retry.Delay},
		ClockDrift:    cfg.ClockDrift,
		RestartDelay:  cfg.RestartDelay,
		MaxQuarantine: cfg.MaxQuarantine,
		New:           cfg.NewSet,
		Heal: redlock.Heal{
			Every: cfg.Heal.Every, Rate: cfg.Heal.Rate, Most: cfg.Heal.Size,
			Covers: func(db int, key []byte) bool {
				return string(key) != redlock.MarkerKey && p.current.Load().Router.Rules.Covers(db, key)
			},
		},
		MaxReply: cfg.Limits.LockReply,
		Log:      p.log,
		Observer: p.observer,
	}
}

func lockMasters(servers []endpoint.Endpoint, embedded bool) []redlock.Master {
	masters := make([]redlock.Master, len(servers))
	for i, server := range servers {
		masters[i] = redlock.Master{
			Name: server.Name, Dial: server.Dial,
			Username: server.Username, Password: string(server.Password), Embedded: embedded,
			Moves: server.Moves(),
		}
	}
	return masters
}

// startEmbedded starts the embedded servers that are configured.
func (p *Proxy) startEmbedded(cfg *config.Config) error {
	start := func(name string) (endpoint.Endpoint, error) {
		server, err := embedded.Start(name)
		if err != nil {
			return endpoint.Endpoint{}, err
		}
		p.embedded = append(p.embedded, server)
		return endpoint.Endpoint{Name: name, Network: "tcp", Address: server.Address()}, nil
	}
	if cfg.Upstream.Kind == config.UpstreamEmbedded {
		server, err := start("embedded upstream")
		if err != nil {
			return err
		}
		p.embeddedAt.upstream = &server
	}
	if !cfg.Masters.Embedded {
		return nil
	}
	for i := range config.EmbeddedMasters {
		server, err := start("embedded-" + strconv.Itoa(i+1))
		if err != nil {
			return err
		}
		p.embeddedAt.masters = append(p.embeddedAt.masters, server)
	}
	return nil
}

// endpoints returns the servers to connect to. upstream is nil if there is none.
func (p *Proxy) endpoints(cfg *config.Config) (upstream *endpoint.Endpoint, masters []endpoint.Endpoint) {
	upstream, masters = p.embeddedAt.upstream, cfg.Masters.Servers
	if cfg.Upstream.Kind == config.UpstreamServer {
		upstream = &cfg.Upstream.Server
	}
	if cfg.Masters.Embedded {
		masters = p.embeddedAt.masters
	}
	return upstream, masters
}
