package events

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/redlock"
)

// ruleMetrics are how long the locks of a rule are held and waited for, and about the acquires that the
// rule's wait holds back.
type ruleMetrics struct {
	lockWait, lockHold *prometheus.HistogramVec
	locks              series[string, lockSeries]
	waiting            *prometheus.GaugeVec
	waited             *prometheus.HistogramVec
}

type lockSeries struct{ wait, hold prometheus.Observer }

// These are the ends of a wait.
const (
	WaitGranted = "granted" // the client has the lock
	WaitRefused = "refused" // its time was over
	WaitGone    = "gone"    // the client left
	WaitError   = "error"   // nobody knows who holds the lock, or the lock plane refused
)

var (
	// Clients wait for a lock for up to minutes, and hold it for up to an hour.
	holdBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
	// A wait is far longer than a ballot, and at most an hour.
	waitBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
)

func newRuleMetrics(f *family) *ruleMetrics {
	m := &ruleMetrics{
		lockWait: f.times(holdBuckets, "lock_wait_seconds", "Time from a client's first try to take a lock to its grant, by rule.", "rule"),
		lockHold: f.times(holdBuckets, "lock_hold_seconds", "Time from a lock's grant to its release, if both went through this proxy, by rule.", "rule"),
		waiting:  f.gauge("waiting_acquires", "Acquires held back now by their rule's wait.", "rule"),
		waited: f.times(waitBuckets, "wait_duration_seconds",
			"How long acquires were held back, by rule and outcome: granted, refused (the time was over), gone (the client left) or error.", "rule", "outcome"),
	}
	m.locks.find = func(rule string) lockSeries {
		return lockSeries{m.lockWait.WithLabelValues(rule), m.lockHold.WithLabelValues(rule)}
	}
	return m
}

// rulesInForce makes all series of the current rules, and of those that have a wait, from 0 as Names
// says. It deletes the series of other rules. Only one goroutine at a time may call it.
func (m *Metrics) rulesInForce(rules, waiting []string) {
	of := m.ofRules
	for _, rule := range m.rules {
		if !slices.Contains(rules, rule) {
			forget("rule", rule, m.commandCounts, of.lockWait, of.lockHold, of.waiting, of.waited)
		}
	}
	m.rules = rules
	of.locks.only(rules)
	var labels []commandLabels
	for _, rule := range rules {
		for kind := redlock.KindAcquire; kind <= redlock.KindToken; kind++ {
			for _, verdict := range m.verdicts {
				labels = append(labels, commandLabels{kind.String(), verdict, rule})
			}
		}
	}
	m.commands.only(labels)
	for _, rule := range waiting {
		of.waiting.WithLabelValues(rule)
		for _, outcome := range []string{WaitGranted, WaitRefused, WaitGone, WaitError} {
			of.waited.WithLabelValues(rule, outcome)
		}
	}
}

// LockWaited counts a lock that was granted, and how long the client waited for it.
func (m *Metrics) LockWaited(rule string, after time.Duration) {
	m.ofRules.locks.get(rule).wait.Observe(after.Seconds())
}

// LockHeld counts a lock that was released, and how long it was held.
func (m *Metrics) LockHeld(rule string, after time.Duration) {
	m.ofRules.locks.get(rule).hold.Observe(after.Seconds())
}

// Waits shows an acquire that is held back, until the caller calls ended with the outcome.
// If a reload deletes the rule in between, only the series of that outcome comes back.
func (m *Metrics) Waits(rule string) (ended func(outcome string, after time.Duration)) {
	waiting := m.ofRules.waiting.WithLabelValues(rule)
	waiting.Inc()
	return func(outcome string, after time.Duration) {
		waiting.Dec()
		m.ofRules.waited.WithLabelValues(rule, outcome).Observe(after.Seconds())
	}
}
