package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/redlock"
)

// masterStates are all states. Each has a series of its own.
var masterStates = []redlock.MasterState{redlock.Away, redlock.Uncertified, redlock.Quarantined, redlock.Certified, redlock.Barred}

var (
	stateMetric      = collected("master_state", "1 for the current state of a master, 0 for the others: voting, starting, quarantined, rejected or unreachable.", "master", "state")
	quarantineMetric = collected("master_quarantine_end_timestamp_seconds", "When the quarantine of a master ends, if nothing else happens.", "master")
	longestMetric    = collected("master_longest_ttl_seconds", "Longest TTL granted according to the marker of the master, up to max_quarantine.", "master")
	neededMetric     = collected("masters_needed", "Number of masters that form a quorum.")
	configuredMetric = collected("masters_configured", "Number of masters of the set, of which masters_needed form a quorum.")
	epochMetric      = collected("set_epoch", "How often a master of the set was replaced, or their number took a step, plus 1; 0 while there is no set.")
	readyMetric      = collected("ready", "1 while a quorum of masters votes, else 0.")
)

// Masters shows the states of the masters. It no longer shows a master that was replaced.
func Masters(status func() redlock.Status) prometheus.Collector {
	return collector{[]*prometheus.Desc{
		stateMetric, quarantineMetric, longestMetric, neededMetric, configuredMetric, epochMetric, readyMetric,
	}, func(show show) {
		status := status()
		for _, master := range status.Masters {
			for _, state := range masterStates {
				show.gauge(stateMetric, oneIf(master.State == state), master.Name, state.String())
			}
			if master.State == redlock.Quarantined && !master.Until.IsZero() {
				show.gauge(quarantineMetric, seconds(master.Until), master.Name)
			}
			show.gauge(longestMetric, master.Longest.Seconds(), master.Name)
		}
		show.gauge(neededMetric, float64(status.Needed))
		show.gauge(configuredMetric, float64(len(status.Masters)))
		show.gauge(epochMetric, float64(status.Epoch))
		show.gauge(readyMetric, oneIf(status.Ready()))
	}}
}

var upstreamMetric = collected("upstream_up", "1 while the upstream can be used, else 0; absent if there is none outside the process.")

// Upstream shows whether the upstream can be used. known is false if there is none.
func Upstream(state func() (up, known bool)) prometheus.Collector {
	return collector{[]*prometheus.Desc{upstreamMetric}, func(show show) {
		if up, known := state(); known {
			show.gauge(upstreamMetric, oneIf(up))
		}
	}}
}

// A MovingRule is a lock rule whose keys are held back because the rules were changed.
type MovingRule struct {
	Rule  string // its label
	Until time.Time
}

var (
	movingMetric    = collected("moving_rules", "Number of lock rules whose keys get TRYAGAIN because the rules were changed.")
	movingEndMetric = collected("moving_rule_end_timestamp_seconds", "Until when the keys of a lock rule get TRYAGAIN because the rules were changed.", "rule")
)

// Moving shows the rules whose keys are held back.
func Moving(now func() []MovingRule) prometheus.Collector {
	return collector{[]*prometheus.Desc{movingMetric, movingEndMetric}, func(show show) {
		moving := now()
		show.gauge(movingMetric, float64(len(moving)))
		ends := map[string]time.Time{} // rules of several databases may have one label
		for _, m := range moving {
			if m.Until.After(ends[m.Rule]) {
				ends[m.Rule] = m.Until
			}
		}
		for rule, until := range ends {
			show.gauge(movingEndMetric, seconds(until), rule)
		}
	}}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
