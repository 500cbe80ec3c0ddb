package proxy

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"redlock-proxy/redlock"

	"github.com/prometheus/client_golang/prometheus"
)

// standingLog is told of the lock plane what metrics are told, and logs each
// change of a master's state besides.
type standingLog struct {
	*metrics
	log *slog.Logger

	mu   sync.Mutex
	last map[string]redlock.MasterState // by the master's name
}

func newStandingLog(m *metrics, log *slog.Logger) *standingLog {
	return &standingLog{metrics: m, log: log, last: map[string]redlock.MasterState{}}
}

// Standing implements redlock.Observer. What is worse than before is a warning.
func (o *standingLog) Standing(s redlock.MasterStatus) {
	o.metrics.Standing(s)
	o.mu.Lock()
	before := o.last[s.Name] // of one that was never seen: away
	o.last[s.Name] = s.State
	o.mu.Unlock()
	level, text := slog.LevelWarn, ""
	switch s.State {
	case redlock.Certified:
		level, text = slog.LevelInfo, "a lock master votes"
	case redlock.Uncertified:
		text = "a lock master answers and does not vote"
		if before == redlock.Away || before == redlock.Uncertified {
			level = slog.LevelInfo
		}
	case redlock.Quarantined:
		text = "a lock master is in quarantine: it is asked everything and its votes do not count"
	case redlock.Barred:
		text = "a lock master must not vote"
	default:
		text = "a lock master is away: locks do without it, and releases wait for it"
	}
	fields := []any{"master", s.Name, "state", s.State.String()}
	if s.Reason != "" {
		fields = append(fields, "reason", s.Reason)
	}
	if !s.Until.IsZero() {
		fields = append(fields, "until", timestamp(s.Until))
	}
	o.log.Log(context.Background(), level, text, fields...)
}

// timestamp is a moment as people and programs read it.
func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// masterStates are all states there are, for one series each.
var masterStates = []redlock.MasterState{redlock.Away, redlock.Uncertified, redlock.Quarantined, redlock.Certified, redlock.Barred}

// standingCollector shows how the masters stand whenever metrics are read. A
// master that was replaced is not shown any more.
type standingCollector struct{ status func() redlock.Status }

var (
	stateMetric      = standingMetric("master_state", "1 for the state that a master is in, 0 for the others.", "master", "state")
	quarantineMetric = standingMetric("master_quarantine_end_timestamp_seconds", "When a quarantined master will vote again if nothing happens.", "master")
	longestMetric    = standingMetric("master_longest_ttl_seconds", "The longest TTL granted, as the master's marker has it, up to max_quarantine.", "master")
	neededMetric     = standingMetric("masters_needed", "How many masters must vote alike to decide.")
	configuredMetric = standingMetric("masters_configured", "How many masters there are.")
	epochMetric      = standingMetric("set_epoch", "How often a master of the set was replaced, counted from 1; 0 as long as there is no set.")
	readyMetric      = standingMetric("ready", "1 while enough masters vote to decide locks.")
)

func standingMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("redlock_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (standingCollector) Describe(out chan<- *prometheus.Desc) {
	for _, metric := range []*prometheus.Desc{
		stateMetric, quarantineMetric, longestMetric, neededMetric, configuredMetric, epochMetric, readyMetric,
	} {
		out <- metric
	}
}

// Collect implements prometheus.Collector.
func (c standingCollector) Collect(out chan<- prometheus.Metric) {
	status := c.status()
	gauge := func(metric *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(metric, prometheus.GaugeValue, value, labels...)
	}
	for _, master := range status.Masters {
		for _, state := range masterStates {
			gauge(stateMetric, oneIf(master.State == state), master.Name, state.String())
		}
		if master.State == redlock.Quarantined && !master.Until.IsZero() {
			gauge(quarantineMetric, float64(master.Until.UnixMilli())/1000, master.Name)
		}
		gauge(longestMetric, master.Longest.Seconds(), master.Name)
	}
	gauge(neededMetric, float64(status.Needed))
	gauge(configuredMetric, float64(len(status.Masters)))
	gauge(epochMetric, float64(status.Epoch))
	gauge(readyMetric, oneIf(status.Ready()))
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
