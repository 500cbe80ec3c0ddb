package metrics

import "github.com/prometheus/client_golang/prometheus"

// LeaseCounts are the numbers about renewed locks, and those that end with their client's
// connection. The maps' keys are closed sets of names, and all are there from the start.
type LeaseCounts struct {
	Held     int64            // leases now
	Renewals map[string]int64 // by result
	Releases map[string]int64 // of locks whose connection has ended, by result
	Refused  map[string]int64 // locks taken without a lease, by reason
	Lost     int64            // connections closed for a lost lock
}

var (
	leasesMetric   = collected("leases", "Locks that end with their connection or are renewed while it is open.")
	lostMetric     = collected("leases_lost_total", "Clients disconnected because a lock of theirs could not be renewed in time.")
	renewalsMetric = collected("lease_renewals_total", "Renewals of locks: renewed, ended (the lock was released) or undecided (asked again).", "result")
	releasesMetric = collected("lease_releases_total", "Locks whose client ended its connection: released, absent (it had ended), undecided (too few masters answered; the others get the release later), or short_value (left to its TTL, as is a hash, since clients may share the value).", "result")
	refusedMetric  = collected("leases_refused_total", "Locks taken that are not renewed: too_many, too_large, not_a_string, ttl_too_short or draining.", "reason")
)

// Leases shows what counts returns. Many goroutines may call counts.
func Leases(counts func() LeaseCounts) prometheus.Collector {
	return collector{[]*prometheus.Desc{leasesMetric, lostMetric, renewalsMetric, releasesMetric, refusedMetric}, func(show show) {
		now := counts()
		show.gauge(leasesMetric, float64(now.Held))
		show.counter(lostMetric, float64(now.Lost))
		for metric, numbers := range map[*prometheus.Desc]map[string]int64{renewalsMetric: now.Renewals, releasesMetric: now.Releases, refusedMetric: now.Refused} {
			for name, number := range numbers {
				show.counter(metric, float64(number), name)
			}
		}
	}}
}
