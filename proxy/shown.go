package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/metrics"
)

// These functions translate settings into the terms of package metrics.

func newMetrics(reg prometheus.Registerer) (*metrics.Metrics, error) {
	names := metrics.Names{Verdicts: lock.Verdicts(), Build: thisBuild().labels()}
	for _, limit := range new(config.Limits).Table() {
		names.Limits = append(names.Limits, string(limit.Name))
	}
	return metrics.New(reg, names)
}

func shownOf(cfg *config.Config, since time.Time) metrics.Settings {
	shown := metrics.Settings{Since: since, Hash: cfg.Hash(), Clients: cfg.Limits.Clients, MasterTimeout: cfg.MasterTimeout}
	for i := range cfg.Locks {
		shown.Rules = append(shown.Rules, cfg.Locks[i].Label())
	}
	return shown
}

func (p *Proxy) movingRules() []metrics.MovingRule {
	var moving []metrics.MovingRule
	for _, m := range p.current.Load().Router.Moving(time.Now()) {
		moving = append(moving, metrics.MovingRule{Rule: config.DescribeCoverage(m.Rule), Until: m.Until})
	}
	return moving
}
