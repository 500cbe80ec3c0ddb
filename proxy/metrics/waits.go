package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// waitMetrics are about acquires that their rule's wait holds back.
type waitMetrics struct {
	waiting *prometheus.GaugeVec
	waited  *prometheus.HistogramVec
}

// These are the ends of a wait.
const (
	WaitGranted = "granted" // the client has the lock
	WaitRefused = "refused" // its time was over
	WaitGone    = "gone"    // the client left
	WaitError   = "error"   // nobody knows who holds the lock, or the lock plane refused
)

// A wait is far longer than a ballot, and at most an hour.
var waitBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

func newWaitMetrics(f *family) waitMetrics {
	return waitMetrics{
		waiting: f.gauge("waiting_acquires", "Acquires held back now by their rule's wait.", "rule"),
		waited: f.times(waitBuckets, "wait_duration_seconds",
			"How long acquires were held back, by rule and outcome: granted, refused (the time was over), gone (the client left) or error.", "rule", "outcome"),
	}
}

// show makes the series of these rules, from 0 as Names says.
func (m *waitMetrics) show(rules []string) {
	for _, rule := range rules {
		m.waiting.WithLabelValues(rule)
		for _, outcome := range []string{WaitGranted, WaitRefused, WaitGone, WaitError} {
			m.waited.WithLabelValues(rule, outcome)
		}
	}
}

func (m *waitMetrics) forget(rule string) {
	m.waiting.DeletePartialMatch(prometheus.Labels{"rule": rule})
	m.waited.DeletePartialMatch(prometheus.Labels{"rule": rule})
}

// Waits shows an acquire that is held back, until the caller calls ended with the outcome.
// If a reload deletes the rule in between, only the series of that outcome comes back.
func (m *Metrics) Waits(rule string) (ended func(outcome string, after time.Duration)) {
	waiting := m.waits.waiting.WithLabelValues(rule)
	waiting.Inc()
	return func(outcome string, after time.Duration) {
		waiting.Dec()
		m.waits.waited.WithLabelValues(rule, outcome).Observe(after.Seconds())
	}
}
