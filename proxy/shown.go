package proxy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What the metrics are told, in their own words.

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	names := metricNames{verdicts: verdicts, build: thisBuild().labels()}
	for _, limit := range new(Limits).table() {
		names.limits = append(names.limits, string(limit.name))
	}
	return registerMetrics(reg, names)
}

func shownOf(cfg *Config, since time.Time) shownSettings {
	shown := shownSettings{since: since, hash: hashOf(cfg), clients: cfg.Limits.Clients, masterTimeout: cfg.MasterTimeout}
	for i := range cfg.Locks {
		shown.rules = append(shown.rules, cfg.Locks[i].Label())
	}
	return shown
}

func shownHazards(hazards []hazard) []shownHazard {
	shown := make([]shownHazard, len(hazards))
	for i, h := range hazards {
		shown[i] = shownHazard{h.kind, h.server, h.detail}
	}
	return shown
}
