package proxy

import (
	"errors"
	"time"

	"redlock-proxy/redlock"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are all of the proxy's own. Labels are names from closed sets and
// the masters' names; never a key, and never a value, which is a secret.
type metrics struct {
	commands     *prometheus.CounterVec   // kind, verdict
	commandTimes *prometheus.HistogramVec // kind
	ballotTimes  *prometheus.HistogramVec // kind, verdict
	votes        *prometheus.CounterVec   // master, vote
	voteTimes    *prometheus.HistogramVec // master
	undone       *prometheus.CounterVec   // master
	queued       *prometheus.GaugeVec     // master

	forwards       prometheus.Counter
	clients        prometheus.Gauge
	protocolErrors prometheus.Counter
	dialFailures   prometheus.Counter
	panics         prometheus.Counter
}

// A lock command takes a round trip to the second-fastest or third-fastest
// master: from a tenth of a millisecond beside them to a ballot's deadline
// and a few retries.
var lockTimeBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}

// newMetrics registers everything with reg; an error means that something is
// registered there under one of our names already.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "redlock", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "redlock", Name: name, Help: help}, labels)
	}
	times := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "redlock", Name: name, Help: help, Buckets: lockTimeBuckets,
		}, labels)
	}
	forwards := counter("forwarded_commands_total", "Commands forwarded to the upstream.")
	clients := gauge("clients_connected", "Clients connected now.")
	protocolErrors := counter("protocol_errors_total", "Connections closed because of bytes that are not Redis's protocol.")
	dialFailures := counter("upstream_dial_failures_total", "Failed attempts to reach the upstream for a client.")
	panics := counter("panics_recovered_total", "Sessions closed because of a defect in the proxy.")
	m := &metrics{
		commands:     counter("lock_commands_total", "Lock commands answered, by kind and verdict.", "kind", "verdict"),
		commandTimes: times("lock_command_duration_seconds", "From a lock command's arrival to its reply, retries and all.", "kind"),
		ballotTimes:  times("ballot_duration_seconds", "From a ballot's first byte to its verdict.", "kind", "verdict"),
		votes:        counter("votes_total", "Votes by master: granted, refused or failed.", "master", "vote"),
		voteTimes:    times("vote_duration_seconds", "From a ballot's first byte to a master's answer.", "master"),
		undone:       counter("undone_grants_total", "Grants taken back from a master because the request was not won.", "master"),
		queued:       gauge("queued_for_master", "Undos and releases that wait for a master that is away.", "master"),
	}
	all := []prometheus.Collector{
		m.commands, m.commandTimes, m.ballotTimes, m.votes, m.voteTimes, m.undone, m.queued,
		forwards, clients, protocolErrors, dialFailures, panics,
	}
	for _, collector := range all {
		if err := reg.Register(collector); err != nil {
			return nil, err
		}
	}
	m.forwards, m.clients = forwards.WithLabelValues(), clients.WithLabelValues()
	m.protocolErrors, m.dialFailures, m.panics = protocolErrors.WithLabelValues(), dialFailures.WithLabelValues(), panics.WithLabelValues()
	return m, nil
}

// watchMasters shows how many masters answer, asked when metrics are read.
func watchMasters(reg prometheus.Registerer, reachable func() (answering, masters int)) error {
	gauge := func(name, help string, value func() int) error {
		return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "redlock", Name: name, Help: help,
		}, func() float64 { return float64(value()) }))
	}
	return errors.Join(
		gauge("masters_reachable", "Masters that answer now.", func() int { answering, _ := reachable(); return answering }),
		gauge("masters_configured", "Masters there are.", func() int { _, masters := reachable(); return masters }))
}

// Voted implements redlock.Observer.
func (m *metrics) Voted(master string, vote redlock.Vote, after time.Duration) {
	m.votes.WithLabelValues(master, vote.String()).Inc()
	if vote != redlock.Failed {
		m.voteTimes.WithLabelValues(master).Observe(after.Seconds())
	}
}

// Decided implements redlock.Observer.
func (m *metrics) Decided(kind redlock.Kind, verdict redlock.Verdict, after time.Duration) {
	m.ballotTimes.WithLabelValues(kind.String(), verdict.String()).Observe(after.Seconds())
}

// Undone implements redlock.Observer.
func (m *metrics) Undone(master string) { m.undone.WithLabelValues(master).Inc() }

// Queued implements redlock.Observer.
func (m *metrics) Queued(master string, waiting int) {
	m.queued.WithLabelValues(master).Set(float64(waiting))
}

func (m *metrics) lockCommand(kind, verdict string, seconds float64) {
	m.commands.WithLabelValues(kind, verdict).Inc()
	m.commandTimes.WithLabelValues(kind).Observe(seconds)
}

func (m *metrics) clientConnected()    { m.clients.Inc() }
func (m *metrics) clientGone()         { m.clients.Dec() }
func (m *metrics) forwarded()          { m.forwards.Inc() }
func (m *metrics) protocolErrorSeen()  { m.protocolErrors.Inc() }
func (m *metrics) upstreamDialFailed() { m.dialFailures.Inc() }
func (m *metrics) panicRecovered()     { m.panics.Inc() }
