package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/lock"
)

// These functions give packages events and lease what they show or need, in their terms.

func newMetrics(reg prometheus.Registerer) (*events.Metrics, error) {
	return events.NewMetrics(reg, events.Names{Verdicts: lock.Verdicts(), Limits: config.LimitNames(), Build: thisBuild().labels()})
}

func shownOf(cfg *config.Config, since time.Time) events.Configured {
	return events.Configured{
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

func (p *Proxy) movingRules() []events.MovingRule {
	var moving []events.MovingRule
	for _, m := range p.current.Load().Router.Moving(time.Now()) {
		moving = append(moving, events.MovingRule{Rule: m.Rule.Label(), Until: m.Until})
	}
	return moving
}

// leaseRule is what the current rules say about the lease of a key.
func (p *Proxy) leaseRule(db int, key []byte) lease.Rule {
	if rule := p.current.Load().Router.Rules.Find(db, key); rule != nil {
		return lease.Rule{Renew: rule.Renew, Release: rule.Release}
	}
	return lease.Rule{}
}

func (p *Proxy) leaseLimits() lease.Limits {
	cfg := p.current.Load()
	return lease.Limits{MasterTimeout: cfg.MasterTimeout, ClockDrift: cfg.ClockDrift}
}
