package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/metrics"
)

// What the metrics are told, in their own words.

func newMetrics(reg prometheus.Registerer) (*metrics.Metrics, error) {
	names := metrics.Names{Verdicts: verdicts, Build: thisBuild().labels()}
	for _, limit := range new(config.Limits).Table() {
		names.Limits = append(names.Limits, string(limit.Name))
	}
	return metrics.New(reg, names)
}

func shownOf(cfg *config.Config, since time.Time) metrics.Settings {
	shown := metrics.Settings{Since: since, Hash: hashOf(cfg), Clients: cfg.Limits.Clients, MasterTimeout: cfg.MasterTimeout}
	for i := range cfg.Locks {
		shown.Rules = append(shown.Rules, cfg.Locks[i].Label())
	}
	return shown
}
