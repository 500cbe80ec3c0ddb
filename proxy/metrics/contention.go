package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// contentionMetrics are how long the locks of a rule are held and waited for.
type contentionMetrics struct {
	waited, held *prometheus.HistogramVec
	rules        series[string, contentionSeries]
}

type contentionSeries struct{ waited, held prometheus.Observer }

// Clients wait for a lock for up to minutes, and hold it for up to an hour.
var contentionBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

func newContentionMetrics(f *family) *contentionMetrics {
	m := &contentionMetrics{
		waited: f.times(contentionBuckets, "lock_wait_seconds", "Time from a client's first try to take a lock to its grant, by rule.", "rule"),
		held:   f.times(contentionBuckets, "lock_hold_seconds", "Time from a lock's grant to its release, if both went through this proxy, by rule.", "rule"),
	}
	m.rules.find = func(rule string) contentionSeries {
		return contentionSeries{m.waited.WithLabelValues(rule), m.held.WithLabelValues(rule)}
	}
	return m
}

// forget deletes the series of a rule, which m.rules forgets next.
func (m *contentionMetrics) forget(rule string) {
	m.waited.DeleteLabelValues(rule)
	m.held.DeleteLabelValues(rule)
}

// LockWaited counts a lock that was granted, and how long the client waited for it.
func (m *Metrics) LockWaited(rule string, after time.Duration) {
	m.contention.rules.get(rule).waited.Observe(after.Seconds())
}

// LockHeld counts a lock that was released, and how long it was held.
func (m *Metrics) LockHeld(rule string, after time.Duration) {
	m.contention.rules.get(rule).held.Observe(after.Seconds())
}
