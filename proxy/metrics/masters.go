package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/redlock"
)

// masterStates are all states. Each has a series of its own.
var masterStates = []redlock.MasterState{redlock.Away, redlock.Uncertified, redlock.Quarantined, redlock.Certified, redlock.Barred}

// Masters shows the states of the masters at the time at which metrics are read. It no
// longer shows a master that was replaced.
func Masters(status func() redlock.Status) prometheus.Collector { return mastersCollector{status} }

type mastersCollector struct{ status func() redlock.Status }

var (
	stateMetric      = collected("master_state", "1 for the current state of a master, 0 for the others: voting, starting, quarantined, rejected or unreachable.", "master", "state")
	quarantineMetric = collected("master_quarantine_end_timestamp_seconds", "When the quarantine of a master ends, if nothing else happens.", "master")
	longestMetric    = collected("master_longest_ttl_seconds", "Longest TTL granted according to the marker of the master, up to max_quarantine.", "master")
	neededMetric     = collected("masters_needed", "Number of masters that form a quorum.")
	configuredMetric = collected("masters_configured", "Number of masters of the set, of which masters_needed form a quorum.")
	epochMetric      = collected("set_epoch", "How often a master of the set was replaced, or their number took a step, plus 1; 0 while there is no set.")
	readyMetric      = collected("ready", "1 while a quorum of masters votes, else 0.")
)

// Describe implements prometheus.Collector.
func (mastersCollector) Describe(out chan<- *prometheus.Desc) {
	for _, metric := range []*prometheus.Desc{
		stateMetric, quarantineMetric, longestMetric, neededMetric, configuredMetric, epochMetric, readyMetric,
	} {
		out <- metric
	}
}

// Collect implements prometheus.Collector.
func (c mastersCollector) Collect(out chan<- prometheus.Metric) {
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

// A MovingRule is a lock rule whose keys are held back because the rules were changed.
type MovingRule struct {
	Rule  string
	Until time.Time
}

// Moving shows the rules whose keys are held back at the time at which metrics are read.
func Moving(now func() []MovingRule) prometheus.Collector { return movingCollector{now} }

type movingCollector struct{ now func() []MovingRule }

var (
	movingMetric    = collected("moving_rules", "Number of lock rules whose keys get TRYAGAIN because the rules were changed.")
	movingEndMetric = collected("moving_rule_end_timestamp_seconds", "Until when the keys of a lock rule get TRYAGAIN because the rules were changed.", "rule")
)

// Describe implements prometheus.Collector.
func (movingCollector) Describe(out chan<- *prometheus.Desc) {
	out <- movingMetric
	out <- movingEndMetric
}

// Collect implements prometheus.Collector.
func (c movingCollector) Collect(out chan<- prometheus.Metric) {
	moving := c.now()
	out <- prometheus.MustNewConstMetric(movingMetric, prometheus.GaugeValue, float64(len(moving)))
	for _, m := range moving {
		out <- prometheus.MustNewConstMetric(movingEndMetric, prometheus.GaugeValue, float64(m.Until.UnixMilli())/1000, strings.ToValidUTF8(m.Rule, "\uFFFD"))
	}
}

func collected(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("redlock_"+name, help, labels, nil)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
