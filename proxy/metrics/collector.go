package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A collector reads its numbers when somebody asks for metrics. Nothing counts them in between.
type collector struct {
	metrics []*prometheus.Desc
	collect func(show)
}

// A show gets the numbers of a collector.
type show chan<- prometheus.Metric

func (out show) gauge(metric *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(metric, prometheus.GaugeValue, value, labels...)
}

func (out show) counter(metric *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(metric, prometheus.CounterValue, value, labels...)
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, metric := range c.metrics {
		out <- metric
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) { c.collect(out) }

func collected(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("redlock_"+name, help, labels, nil)
}

// seconds is a time as Prometheus writes one.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

var (
	bufferedMetric    = collected("buffered_bytes", "Bytes buffered for all clients; limits.memory is the limit.")
	connectionsMetric = collected("shared_connections", "Upstream connections that clients share.")
	unruledMetric     = collected("unruled_patterns", "Patterns of keys that look like locks and match no lock rule; REDLOCK UNRULED shows them.")
	unruledUsesMetric = collected("unruled_uses_total", "Locks that match no lock rule: taken and given back at the upstream.")
	membersMetric     = collected("shared_clients", "Clients that use a shared upstream connection.")
)

// Buffers shows the number of bytes in use of the memory that clients share.
func Buffers(inUse func() int64) prometheus.Collector {
	return collector{[]*prometheus.Desc{bufferedMetric}, func(show show) { show.gauge(bufferedMetric, float64(inUse())) }}
}

// Unruled shows how many patterns of keys look like locks that no rule matches, and how often such locks were used.
func Unruled(counts func() (patterns int, uses int64)) prometheus.Collector {
	return collector{[]*prometheus.Desc{unruledMetric, unruledUsesMetric}, func(show show) {
		patterns, uses := counts()
		show.gauge(unruledMetric, float64(patterns))
		show.counter(unruledUsesMetric, float64(uses))
	}}
}

// Shared shows the shared upstream connections, and the clients that use them.
func Shared(counts func() (connections, clients int)) prometheus.Collector {
	return collector{[]*prometheus.Desc{connectionsMetric, membersMetric}, func(show show) {
		connections, clients := counts()
		show.gauge(connectionsMetric, float64(connections))
		show.gauge(membersMetric, float64(clients))
	}}
}
