package proxy

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/page"
	"redlock-proxy/proxy/unruled"
)

// These functions give packages metrics and page what they show, in their terms.

// newPage is called before the parts that the page asks exist. Nobody can ask the page before
// Serve.
func (p *Proxy) newPage() *page.Page {
	return page.New(page.Source{
		Version:  Version(),
		Journal:  p.journal,
		Masters:  p.masters,
		Draining: p.draining.Load,
		Clients:  func() int { return p.clients.Count() },
		Notes:    p.notes,
		Upstream: func() (problem string) {
			up, _ := p.monitor.Upstream()
			return up.Problem
		},
		Known: func() []events.ClientInfo { return p.clients.Known() },
		Held: func(ctx context.Context, glob string, n int) (console.Held, bool) {
			return p.operators.Held(ctx, glob, n)
		},
		Unruled: p.unruledLocks,
		Hottest: func(n int) []events.HotKey { return p.operators.Hottest(n) },
	})
}

func newMetrics(reg prometheus.Registerer) (*metrics.Metrics, error) {
	return metrics.New(reg, metrics.Names{Verdicts: lock.Verdicts(), Limits: config.LimitNames(), Build: thisBuild().labels()})
}

func shownOf(cfg *config.Config, since time.Time) metrics.Settings {
	return metrics.Settings{
		Since: since, Hash: cfg.Hash(), Clients: cfg.Limits.Clients, MasterTimeout: cfg.MasterTimeout,
		Rules: cfg.Locks.Labels(), Waiting: cfg.Locks.Waiting().Labels(),
	}
}

// isSlow tells whether a lock command took so long that the slow log shows it, and counts it.
func (p *Proxy) isSlow(took time.Duration) bool {
	limit := p.current.Load().Limits.SlowCommand
	if limit == 0 || took < limit {
		return false
	}
	p.metrics.LimitReached(string(config.LimitSlowCommand))
	return true
}

func (p *Proxy) upstreamUp() (up, known bool) {
	upstream, known := p.monitor.Upstream()
	return upstream.Problem == "", known
}

func (p *Proxy) movingRules() []metrics.MovingRule {
	var moving []metrics.MovingRule
	for _, m := range p.current.Load().Router.Moving(time.Now()) {
		moving = append(moving, metrics.MovingRule{Rule: m.Rule.Label(), Until: m.Until})
	}
	return moving
}

// unruledLocks are the patterns of keys that look like locks, and that no rule matches now.
func (p *Proxy) unruledLocks() []unruled.Found {
	settings := p.current.Load()
	return p.unruled.Found(settings.Router.Rules, settings.Config.Ignore)
}
