package events

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/redlock"
)

// operationMetrics are about an operator's actions and about things to look after.
type operationMetrics struct {
	stateChanges *prometheus.CounterVec
	amnesia      *prometheus.CounterVec
	hazards      *prometheus.GaugeVec
	hazardsShown []Hazard
	withoutTTL   prometheus.Counter
	beyond       prometheus.Counter
	reloads      *prometheus.CounterVec
	reloaded     prometheus.Gauge
	activeSince  prometheus.Gauge
	hash         prometheus.Gauge
	clients      prometheus.Gauge
	timeout      prometheus.Gauge
	healed       *prometheus.CounterVec
	healPasses   *prometheus.CounterVec
	healedAt     prometheus.Gauge
}

// A labelled metric has series for each master, or for each rule.
type labelled interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// forget deletes the series that have a label with a value.
func forget(label, value string, metrics ...labelled) {
	for _, metric := range metrics {
		metric.DeletePartialMatch(prometheus.Labels{label: value})
	}
}

const (
	reloadApplied = "applied"
	reloadRefused = "refused"

	passComplete   = "complete"
	passIncomplete = "incomplete"
)

func newOperationMetrics(f *family) operationMetrics {
	m := operationMetrics{
		stateChanges: f.counter("master_state_changes_total", "Changes of a master's state, by the state it came to.", "master", "state"),
		amnesia:      f.counter("master_quarantines_begun_total", "Quarantines of a master that this proxy recorded, by cause: emptied, restarted, clock_jumped or replaced.", "master", "cause"),
		hazards:      f.gauge("hazards", "Hazards to locks, by kind, server and what is missing there.", "kind", "server", "detail"),
		withoutTTL:   f.count("locks_without_ttl_total", "Locks taken without a TTL. Only a release ends them."),
		beyond:       f.count("locks_beyond_quarantine_total", "Locks taken for longer than max_quarantine. No quarantine covers them."),
		reloads:      f.counter("config_reloads_total", "Reloads of the configuration: applied or refused.", "result"),
		reloaded:     f.number("config_last_reload_successful", "1 if the last reload was applied or there was none, else 0."),
		activeSince:  f.number("config_in_force_timestamp_seconds", "When the active configuration became active."),
		hash:         f.number("config_hash", "Hash of the active masters, rules and times. Proxies over the same masters should show the same."),
		clients:      f.number("clients_limit", "Maximum number of connected clients."),
		timeout:      f.number("master_timeout_seconds", "How long a ballot waits for a master."),
		healed:       f.counter("healed_copies_total", "Copies of locks for masters that lacked them: written, refused (by the master) or too_large.", "master", "result"),
		healPasses:   f.counter("heal_passes_total", "Passes of healing over all keys: complete, or incomplete (something was lacking at the end).", "result"),
		healedAt:     f.number("heal_complete_timestamp_seconds", "When the last complete pass of healing began; 0: there was none."),
	}
	m.healPasses.WithLabelValues(passComplete)
	m.healPasses.WithLabelValues(passIncomplete)
	m.reloads.WithLabelValues(reloadApplied)
	m.reloads.WithLabelValues(reloadRefused)
	m.reloaded.Set(1)
	return m
}

// Healed implements redlock.Observer.
func (m *Metrics) Healed(master string, did redlock.HealDeed) {
	m.operations.healed.WithLabelValues(master, did.String()).Inc()
}

// HealPassed implements redlock.Observer.
func (m *Metrics) HealPassed(began time.Time, complete bool) {
	if !complete {
		m.operations.healPasses.WithLabelValues(passIncomplete).Inc()
		return
	}
	m.operations.healPasses.WithLabelValues(passComplete).Inc()
	m.operations.healedAt.Set(seconds(began))
}

func (m *Metrics) LockWithoutTTL()       { m.operations.withoutTTL.Inc() }
func (m *Metrics) LockBeyondQuarantine() { m.operations.beyond.Inc() }

// ReloadRefused counts a refused reload.
func (m *Metrics) ReloadRefused() {
	m.operations.reloads.WithLabelValues(reloadRefused).Inc()
	m.operations.reloaded.Set(0)
}

// ReloadApplied counts an applied reload, and shows the new settings.
func (m *Metrics) ReloadApplied(now Settings) {
	m.operations.reloads.WithLabelValues(reloadApplied).Inc()
	m.operations.reloaded.Set(1)
	m.ShowSettings(now)
}

// Settings are the parts of the current configuration to compare other metrics with.
type Settings struct {
	Since         time.Time
	Hash          uint64
	Rules         []string // their labels
	Waiting       []string // those of rules with a wait
	Clients       int
	MasterTimeout time.Duration
}

// ShowSettings shows the current configuration.
func (m *Metrics) ShowSettings(now Settings) {
	m.operations.activeSince.Set(seconds(now.Since))
	m.operations.hash.Set(float64(now.Hash))
	m.rulesInForce(now.Rules, now.Waiting)
	m.operations.clients.Set(float64(now.Clients))
	m.operations.timeout.Set(now.MasterTimeout.Seconds())
}

// A Hazard is something that endangers locks. Its fields are the metric's labels.
type Hazard struct {
	Kind   string `json:"kind"`
	Server string `json:"server"`
	Detail string `json:"detail"` // what is missing there
}

// ShowHazards shows these hazards and no others. No scrape sees one missing that goes on. Only one
// goroutine at a time may call it.
func (m *Metrics) ShowHazards(hazards []Hazard) {
	for _, h := range hazards {
		m.operations.hazards.WithLabelValues(h.Kind, h.Server, h.Detail).Set(1)
	}
	for _, h := range m.operations.hazardsShown {
		if !slices.Contains(hazards, h) {
			m.operations.hazards.DeleteLabelValues(h.Kind, h.Server, h.Detail)
		}
	}
	m.operations.hazardsShown = hazards
}

// ForgetMaster deletes the series of a master that was replaced.
func (m *Metrics) ForgetMaster(name string) {
	m.masters.forget(name)
	forget("master", name, m.ofMasters...)
}
