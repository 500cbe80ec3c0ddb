package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// LeaseCounts are the numbers about renewed locks, and those that end with their client's
// connection. The maps' keys are closed sets of names, and all are there from the start.
type LeaseCounts struct {
	Held     int64            // leases now
	Renewals map[string]int64 // by result
	Releases map[string]int64 // of locks whose connection has ended, by result
	Refused  map[string]int64 // locks taken without a lease, by reason
	Lost     int64            // connections closed for a lost lock
}

// leases shows LeaseCounts whenever somebody asks for metrics.
type leases struct {
	counts                                  func() LeaseCounts
	held, lost, renewals, releases, refused *prometheus.Desc
}

// Leases makes a collector of what counts returns. Many goroutines may call counts.
func Leases(counts func() LeaseCounts) prometheus.Collector {
	name := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("redlock_"+name, help, labels, nil)
	}
	return leases{
		counts:   counts,
		held:     name("leases", "Locks that end with their connection or are renewed while it is open."),
		lost:     name("leases_lost_total", "Clients disconnected because a lock of theirs could not be renewed in time."),
		renewals: name("lease_renewals_total", "Renewals of locks: renewed, ended (the lock was released) or undecided (asked again).", "result"),
		releases: name("lease_releases_total", "Locks whose client ended its connection: released, absent (it had ended), undecided (too few masters answered; the others get the release later), or short_value (left to its TTL, as is a hash, since clients may share the value).", "result"),
		refused:  name("leases_refused_total", "Locks taken that are not renewed: too_many, too_large, not_a_string, ttl_too_short or draining.", "reason"),
	}
}

func (l leases) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{l.held, l.lost, l.renewals, l.releases, l.refused} {
		out <- desc
	}
}

func (l leases) Collect(out chan<- prometheus.Metric) {
	now := l.counts()
	out <- prometheus.MustNewConstMetric(l.held, prometheus.GaugeValue, float64(now.Held))
	out <- prometheus.MustNewConstMetric(l.lost, prometheus.CounterValue, float64(now.Lost))
	for desc, numbers := range map[*prometheus.Desc]map[string]int64{l.renewals: now.Renewals, l.releases: now.Releases, l.refused: now.Refused} {
		for _, name := range slices.Sorted(maps.Keys(numbers)) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(numbers[name]), name)
		}
	}
}
