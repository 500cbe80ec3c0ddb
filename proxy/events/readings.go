package events

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/redlock"
)

// Readings are the numbers that are read when the metrics are. Nothing counts them in between. Many
// goroutines may call the functions.
type Readings struct {
	Masters  func() redlock.Status
	Upstream func() (up, known bool) // known is false if there is none
	Moving   func() []MovingRule
	Leases   func() LeaseCounts
	Buffered func() int64                      // bytes of the memory that clients share
	Shared   func() (connections, clients int) // of the upstream
	Unruled  func() (patterns int, uses int64) // of keys that look like locks and match no rule
}

// A MovingRule is a lock rule whose keys are held back because the rules were changed.
type MovingRule struct {
	Rule  string // its label
	Until time.Time
}

// LeaseCounts are the numbers about renewed locks, and those that end with their client's
// connection. The maps' keys are closed sets of names, and all are there from the start.
type LeaseCounts struct {
	Held     int64            // leases now
	Renewals map[string]int64 // by result
	Releases map[string]int64 // of locks whose connection has ended, by result
	Refused  map[string]int64 // locks taken without a lease, by reason
	Lost     int64            // connections closed for a lost lock
}

// Describe implements prometheus.Collector. It tells nothing, so each name is checked when it is read.
func (r Readings) Describe(chan<- *prometheus.Desc) {}

// A show gets the numbers of Readings.
type show chan<- prometheus.Metric

// A label is the name of a label, with its value.
type label struct{ name, value string }

func (out show) number(kind prometheus.ValueType, name, help string, value float64, labels ...label) {
	var names, values []string
	for _, l := range labels {
		names, values = append(names, l.name), append(values, l.value)
	}
	out <- prometheus.MustNewConstMetric(prometheus.NewDesc("redlock_"+name, help, names, nil), kind, value, values...)
}

func (out show) gauge(name, help string, value float64, labels ...label) {
	out.number(prometheus.GaugeValue, name, help, value, labels...)
}

func (out show) counter(name, help string, value float64, labels ...label) {
	out.number(prometheus.CounterValue, name, help, value, labels...)
}

// by shows a counter for each value of a label.
func (out show) by(name, help, labelled string, counts map[string]int64) {
	for value, count := range counts {
		out.counter(name, help, float64(count), label{labelled, value})
	}
}

// Collect implements prometheus.Collector.
func (r Readings) Collect(to chan<- prometheus.Metric) {
	out := show(to)
	out.masters(r.Masters())
	if up, known := r.Upstream(); known {
		out.gauge("upstream_up", "1 while the upstream can be used, else 0; absent if there is none outside the process.", oneIf(up))
	}
	out.moving(r.Moving())
	leases := r.Leases()
	out.gauge("leases", "Locks that end with their connection or are renewed while it is open.", float64(leases.Held))
	out.counter("leases_lost_total", "Clients disconnected because a lock of theirs could not be renewed in time.", float64(leases.Lost))
	out.by("lease_renewals_total", "Renewals of locks: renewed, ended (the lock was released) or undecided (asked again).", "result", leases.Renewals)
	out.by("lease_releases_total", "Locks whose client ended its connection: released, absent (it had ended), undecided (too few masters answered; the others get the release later), or short_value (left to its TTL, as is a hash, since clients may share the value).", "result", leases.Releases)
	out.by("leases_refused_total", "Locks taken that are not renewed: too_many, too_large, not_a_string, ttl_too_short or draining.", "reason", leases.Refused)
	out.gauge("buffered_bytes", "Bytes buffered for all clients; limits.memory is the limit.", float64(r.Buffered()))
	connections, clients := r.Shared()
	out.gauge("shared_connections", "Upstream connections that clients share.", float64(connections))
	out.gauge("shared_clients", "Clients that use a shared upstream connection.", float64(clients))
	patterns, uses := r.Unruled()
	out.gauge("unruled_patterns", "Patterns of keys that look like locks and match no lock rule; REDLOCK UNRULED shows them.", float64(patterns))
	out.counter("unruled_uses_total", "Locks that match no lock rule: taken and given back at the upstream.", float64(uses))
}

// masterStates are all states. Each has a series of its own, so a dashboard needs no numbers.
var masterStates = []redlock.MasterState{redlock.Unreachable, redlock.Starting, redlock.Quarantined, redlock.Voting, redlock.Rejected}

// masters shows the states of the masters, and none of a master that was replaced.
func (out show) masters(status redlock.Status) {
	for _, master := range status.Masters {
		of := label{"master", master.Name}
		for _, state := range masterStates {
			out.gauge("master_state", "1 for the current state of a master, 0 for the others: voting, starting, quarantined, rejected or unreachable.", oneIf(master.State == state), of, label{"state", state.String()})
		}
		if master.State == redlock.Quarantined && !master.Until.IsZero() {
			out.gauge("master_quarantine_end_timestamp_seconds", "When the quarantine of a master ends, if nothing else happens.", seconds(master.Until), of)
		}
		out.gauge("master_longest_ttl_seconds", "Longest TTL granted according to the marker of the master, up to max_quarantine.", master.Longest.Seconds(), of)
	}
	out.gauge("masters_needed", "Number of masters that form a quorum.", float64(status.Needed))
	out.gauge("masters_configured", "Number of masters of the set, of which masters_needed form a quorum.", float64(len(status.Masters)))
	out.gauge("set_epoch", "How often a master of the set was replaced, or their number took a step, plus 1; 0 while there is no set.", float64(status.Epoch))
	out.gauge("ready", "1 while a quorum of masters votes, else 0.", oneIf(status.Ready()))
}

// moving shows the rules whose keys are held back. Rules of several databases may have one label.
func (out show) moving(rules []MovingRule) {
	out.gauge("moving_rules", "Number of lock rules whose keys get TRYAGAIN because the rules were changed.", float64(len(rules)))
	ends := map[string]time.Time{}
	for _, m := range rules {
		if m.Until.After(ends[m.Rule]) {
			ends[m.Rule] = m.Until
		}
	}
	for rule, until := range ends {
		out.gauge("moving_rule_end_timestamp_seconds", "Until when the keys of a lock rule get TRYAGAIN because the rules were changed.", seconds(until), label{"rule", rule})
	}
}

// seconds is a time as Prometheus writes one.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
