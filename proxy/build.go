package proxy

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/embedded"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/inspect"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// toys are where the embedded servers are, those that there are.
type toys struct {
	upstream *endpoint.Endpoint
	masters  []endpoint.Endpoint
}

// build makes the parts in the order in which they need each other. What it
// has made when it fails, close ends.
func (p *Proxy) build(cfg *config.Config, reg *prometheus.Registry) error {
	var err error
	if p.metrics, err = newMetrics(reg); err != nil {
		return err
	}
	if err := p.listen(cfg); err != nil {
		return err
	}
	if cfg.Admin != "" {
		if p.web, err = listen("admin", cfg.Admin); err != nil {
			return err
		}
		p.admin = newAdminServer(reg, p.readiness, p.Reload)
	}
	if err := p.startToys(cfg); err != nil {
		return err
	}
	upstream, masters := p.endpoints(cfg)
	p.current = config.NewActive(config.NewSettings(cfg, upstream, masters, &route.Router{Table: command.Builtin(), Rules: cfg.Locks}))
	p.survey = inspect.NewSurvey(p.current, p.metrics, p.log)
	p.hazards = p.survey.Look(context.Background())
	if err := inspect.Refused(p.hazards); err != nil {
		return err
	}
	if p.locker, err = redlock.New(p.lockerConfig(cfg, masters)); err != nil {
		return err
	}
	if err := reg.Register(standingCollector{p.locker.Status}); err != nil {
		return err
	}
	if err := reg.Register(movesCollector{p.current}); err != nil {
		return err
	}
	scripts := newScriptCache(int(cfg.Limits.Scripts))
	scripts.forgotten = func() { p.metrics.LimitReached(string(config.LimitScripts)) }
	p.locks = newLockPlane(p.locker, p.current, scripts, p.metrics, p.log)
	p.locks.starting = afterStart(p.lives, p.locker.Status)
	listen := func(hear func(redlock.Event)) pubsub.Source { return p.locker.Subscriber(hear) }
	p.locks.waits = newWaitingRoom(p.locker.TrackingAvailable, listen)
	p.server = newServer(serverConfig{
		current:     p.current,
		databases:   p.survey.Databases,
		version:     p.survey.Version,
		redlockInfo: p.appendInfo,
		killScripts: func(ctx context.Context) bool { return killScripts(ctx, p.current.Load().Masters) },
		locks:       p.locks,
		subscribes:  listen,
		scripts:     scripts,
		metrics:     p.metrics,
		log:         p.log,
	})
	if err := reg.Register(metrics.BufferedBytes(p.server.memory.InUse)); err != nil {
		return err
	}
	p.metrics.ShowSettings(shownOf(cfg, time.Now()))
	return nil
}

// listen opens the addresses for clients, of which there may be two.
func (p *Proxy) listen(cfg *config.Config) (err error) {
	if cfg.Listen != "" {
		if p.listener, err = listen("listen", cfg.Listen); err != nil {
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
	listener, err := listen("tls.listen", cfg.TLS.Listen)
	if err != nil {
		return err
	}
	p.tlsListener = overTLS(listener, func() *endpoint.TLS { return p.current.Load().Config.TLS.Files })
	return nil
}

// lockerConfig is how the masters are asked.
func (p *Proxy) lockerConfig(cfg *config.Config, masters []endpoint.Endpoint) redlock.Config {
	return redlock.Config{
		Masters:       lockMasters(masters, cfg.Masters.Embedded),
		MasterTimeout: cfg.MasterTimeout,
		Retry:         redlock.Retry{Count: cfg.Retry.Count, Delay: cfg.Retry.Delay},
		ClockDrift:    cfg.ClockDrift,
		RestartDelay:  cfg.RestartDelay,
		MaxQuarantine: cfg.MaxQuarantine,
		New:           cfg.NewSet,
		MaxReply:      cfg.Limits.MasterReply(),
		Log:           p.log,
		Observer:      newStandingLog(p.metrics, p.log),
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

// startToys starts the embedded servers that are configured.
func (p *Proxy) startToys(cfg *config.Config) error {
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
		p.toys.upstream = &server
	}
	if !cfg.Masters.Embedded {
		return nil
	}
	for i := range config.EmbeddedMasters {
		server, err := start("embedded-" + strconv.Itoa(i+1))
		if err != nil {
			return err
		}
		p.toys.masters = append(p.toys.masters, server)
	}
	return nil
}

// endpoints says where the upstream, if any, and the masters are.
func (p *Proxy) endpoints(cfg *config.Config) (upstream *endpoint.Endpoint, masters []endpoint.Endpoint) {
	upstream, masters = p.toys.upstream, cfg.Masters.Servers
	if cfg.Upstream.Kind == config.UpstreamServer {
		upstream = &cfg.Upstream.Server
	}
	if cfg.Masters.Embedded {
		masters = p.toys.masters
	}
	return upstream, masters
}
