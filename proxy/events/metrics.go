package events

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/redlock"
)

// Metrics are all metrics of the proxy that count events. Labels are names from closed
// sets and the names of masters and rules. They are never a key, and never a value, which
// is a secret.
type Metrics struct {
	masters  series[string, masterSeries]
	ballots  series[ballotLabels, prometheus.Observer]
	commands series[commandLabels, commandSeries]

	forwards       prometheus.Counter
	clients        prometheus.Gauge
	protocolErrors prometheus.Counter
	dialFailures   prometheus.Counter
	badReplies     prometheus.Counter
	panics         prometheus.Counter
	limits         map[string]prometheus.Counter
	refusedLogins  prometheus.Counter
	handshakes     prometheus.Counter // those that failed

	operations    operationMetrics
	ofRules       *ruleMetrics
	ofMasters     []labelled // all metrics with a series for each master
	commandCounts *prometheus.CounterVec
	verdicts      []string
	rules         []string                      // those whose series exist
	refusals      map[string]prometheus.Counter // by the error's code

	listeners     prometheus.Gauge
	messages      prometheus.Counter
	invalidations prometheus.Counter
	ended         *prometheus.CounterVec // listeners that were disconnected
}

type masterSeries struct {
	votes  [redlock.Discounted + 1]prometheus.Counter
	times  prometheus.Observer
	undone prometheus.Counter
	queued prometheus.Gauge
}

type ballotLabels struct {
	kind    redlock.Kind
	verdict redlock.Verdict
}

// rule is the rule that the first lock key matches.
type commandLabels struct{ kind, verdict, rule string }

type commandSeries struct {
	count prometheus.Counter
	times prometheus.Observer
}

// A lock command takes a round trip to the second-fastest or third-fastest master. That
// is from a tenth of a millisecond, if the masters are near, to a ballot's deadline and a
// few retries.
var lockTimeBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5}

// Names are values of labels whose series exist from the start with 0. Otherwise
// Prometheus would see no increase at the first 1.
type Names struct {
	Limits   []string
	Verdicts []string // of lock commands
	Build    []string // version, revision and Go's version
}

// A family makes metrics of this process, and remembers them to be registered.
type family []prometheus.Collector

func (f *family) counter(name, help string, labels ...string) *prometheus.CounterVec {
	made := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "redlock", Name: name, Help: help}, labels)
	*f = append(*f, made)
	return made
}

func (f *family) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	made := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "redlock", Name: name, Help: help}, labels)
	*f = append(*f, made)
	return made
}

func (f *family) times(buckets []float64, name, help string, labels ...string) *prometheus.HistogramVec {
	made := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "redlock", Name: name, Help: help, Buckets: buckets}, labels)
	*f = append(*f, made)
	return made
}

// count and number make a counter and a gauge without labels.
func (f *family) count(name, help string) prometheus.Counter {
	return f.counter(name, help).WithLabelValues()
}
func (f *family) number(name, help string) prometheus.Gauge {
	return f.gauge(name, help).WithLabelValues()
}

// NewMetrics registers all metrics with reg. It returns an error if one of our names is
// registered there already.
func NewMetrics(reg prometheus.Registerer, names Names) (*Metrics, error) {
	f := new(family)
	commandTimes := f.times(lockTimeBuckets, "lock_command_duration_seconds", "Time from the arrival of a lock command to its reply, retries included.", "kind")
	ballotTimes := f.times(lockTimeBuckets, "ballot_duration_seconds", "Time from the first byte of a ballot to its verdict.", "kind", "verdict")
	votes := f.counter("votes_total", "Votes by master: granted, refused, failed, or discounted (the master answered but may not vote).", "master", "vote")
	voteTimes := f.times(lockTimeBuckets, "vote_duration_seconds", "Time from the first byte of a ballot to the answer of the master.", "master")
	undone := f.counter("undone_grants_total", "Grants taken back from a master because the ballot was not won.", "master")
	queued := f.gauge("queued_for_master", "Undos and releases queued for an unreachable master.", "master")
	limits := f.counter("limit_reached_total", "How often a limit refused or disconnected a client, or failed a command (for scripts: texts forgotten).", "limit")
	refusals := f.counter("refused_commands_total", "Commands refused because they mix lock keys and other keys (crosslock), because the lock rules moved their keys (tryagain), or because they need the upstream and there is none or it cannot be reached (noupstream).", "reason")
	wakeUps := f.counter("wakeups_total", "Messages and invalidations from the masters sent to clients.", "kind")
	f.gauge("build_info", "Always 1; the labels show what this process was built from.", "version", "revision", "goversion").WithLabelValues(names.Build...).Set(1)
	m := &Metrics{
		operations: newOperationMetrics(f), ofRules: newRuleMetrics(f), verdicts: names.Verdicts,
		forwards:       f.count("forwarded_commands_total", "Commands forwarded to the upstream."),
		clients:        f.number("clients_connected", "Clients connected now."),
		protocolErrors: f.count("protocol_errors_total", "Clients disconnected because they did not send valid Redis protocol."),
		dialFailures:   f.count("upstream_dial_failures_total", "Failed attempts to reach the upstream for a client."),
		badReplies:     f.count("upstream_protocol_errors_total", "Clients disconnected because the upstream sent an invalid or unexpected reply."),
		panics:         f.count("panics_recovered_total", "Clients disconnected because of a bug in the proxy."),
		refusedLogins:  f.count("logins_refused_total", "AUTH and HELLO commands with a wrong user name or password."),
		handshakes:     f.count("tls_handshakes_failed_total", "TLS handshakes that failed."),
		commandCounts:  f.counter("lock_commands_total", "Lock commands answered, by kind, verdict and the rule that makes their key a lock key.", "kind", "verdict", "rule"),
		limits:         make(map[string]prometheus.Counter),
		refusals:       map[string]prometheus.Counter{"CROSSLOCK": refusals.WithLabelValues("crosslock"), "TRYAGAIN": refusals.WithLabelValues("tryagain"), "NOUPSTREAM": refusals.WithLabelValues("noupstream")},
		listeners:      f.number("clients_listening", "Clients that are subscribed to channels of locks or track lock keys."),
		messages:       wakeUps.WithLabelValues("message"),
		invalidations:  wakeUps.WithLabelValues("invalidation"),
		ended:          f.counter("listeners_ended_total", "Subscribed clients disconnected because they may have missed messages (gap) or did not read them (overflow).", "reason"),
	}
	for _, made := range *f {
		if err := reg.Register(made); err != nil {
			return nil, err
		}
	}
	for _, reason := range []string{ListenerGap, ListenerOverflow} {
		m.ended.WithLabelValues(reason)
	}
	for _, limit := range names.Limits {
		m.limits[limit] = limits.WithLabelValues(limit)
	}
	m.ofMasters = []labelled{votes, voteTimes, undone, queued, m.operations.stateChanges, m.operations.amnesia, m.operations.healed}
	m.masters.find = func(master string) masterSeries {
		found := masterSeries{
			times: voteTimes.WithLabelValues(master), undone: undone.WithLabelValues(master), queued: queued.WithLabelValues(master),
		}
		for cause := redlock.Emptied; cause <= redlock.Replaced; cause++ {
			m.operations.amnesia.WithLabelValues(master, cause.String()) // exists with 0, as Names says
		}
		for did := redlock.HealWritten; did <= redlock.HealTooLarge; did++ {
			m.operations.healed.WithLabelValues(master, did.String())
		}
		for vote := range found.votes {
			found.votes[vote] = votes.WithLabelValues(master, redlock.Vote(vote).String())
		}
		return found
	}
	m.ballots.find = func(labels ballotLabels) prometheus.Observer {
		return ballotTimes.WithLabelValues(labels.kind.String(), labels.verdict.String())
	}
	m.commands.find = func(labels commandLabels) commandSeries {
		return commandSeries{m.commandCounts.WithLabelValues(labels.kind, labels.verdict, labels.rule), commandTimes.WithLabelValues(labels.kind)}
	}
	return m, nil
}

// Voted implements redlock.Observer.
func (m *Metrics) Voted(master string, vote redlock.Vote, after time.Duration, _ time.Time) {
	found := m.masters.get(master)
	found.votes[vote].Inc()
	if vote != redlock.Failed {
		found.times.Observe(after.Seconds())
	}
}

// Decided implements redlock.Observer.
func (m *Metrics) Decided(kind redlock.Kind, verdict redlock.Verdict, after time.Duration) {
	m.ballots.get(ballotLabels{kind, verdict}).Observe(after.Seconds())
}

// Undone implements redlock.Observer.
func (m *Metrics) Undone(master string) { m.masters.get(master).undone.Inc() }

// Standing implements redlock.Observer.
func (m *Metrics) Standing(s redlock.MasterStatus) {
	m.operations.stateChanges.WithLabelValues(s.Name, s.State.String()).Inc()
}

// Forgot implements redlock.Observer.
func (m *Metrics) Forgot(master string, cause redlock.Amnesia) {
	m.operations.amnesia.WithLabelValues(master, cause.String()).Inc()
}

// Queued implements redlock.Observer.
func (m *Metrics) Queued(master string, waiting int) {
	m.masters.get(master).queued.Set(float64(waiting))
}

// LockCommand counts a lock command and the seconds that it took.
func (m *Metrics) LockCommand(kind, verdict, rule string, seconds float64) {
	found := m.commands.get(commandLabels{kind, verdict, rule})
	found.count.Inc()
	found.times.Observe(seconds)
}

// Refused counts an error reply by its code, if it is CROSSLOCK or TRYAGAIN. It ignores
// all other codes.
func (m *Metrics) Refused(code string) {
	if counter := m.refusals[code]; counter != nil {
		counter.Inc()
	}
}

func (m *Metrics) ClientConnected()    { m.clients.Inc() }
func (m *Metrics) ClientGone()         { m.clients.Dec() }
func (m *Metrics) Forwarded(n int)     { m.forwards.Add(float64(n)) }
func (m *Metrics) ProtocolError()      { m.protocolErrors.Inc() }
func (m *Metrics) UpstreamDialFailed() { m.dialFailures.Inc() }

// UpstreamProtocolError counts a client that was disconnected because of the upstream's
// replies.
func (m *Metrics) UpstreamProtocolError() { m.badReplies.Inc() }

// LimitReached counts that a client reached a limit. It ignores an unknown or empty name.
func (m *Metrics) LimitReached(limit string) {
	if reached := m.limits[limit]; reached != nil {
		reached.Inc()
	}
}

func (m *Metrics) HandshakeFailed() { m.handshakes.Inc() }
func (m *Metrics) LoginRefused()    { m.refusedLogins.Inc() }
func (m *Metrics) PanicRecovered()  { m.panics.Inc() }

// These are the reasons why a listening client was disconnected.
const (
	ListenerGap      = "gap"
	ListenerOverflow = "overflow"
)

// ClientListens adds to the number of clients that listen to masters: 1 or -1.
func (m *Metrics) ClientListens(change float64) { m.listeners.Add(change) }
func (m *Metrics) ListenerEnded(reason string)  { m.ended.WithLabelValues(reason).Inc() }

// WokenUp counts messages and invalidations that were sent to clients.
func (m *Metrics) WokenUp(messages, invalidations int) {
	m.messages.Add(float64(messages))
	m.invalidations.Add(float64(invalidations))
}

// series caches the results of find for a closed set of labels. Every vote uses it. There
// the library's own look-up by label texts would cost more than everything else that is
// counted.
type series[K comparable, S any] struct {
	find  func(K) S // set before use
	known atomic.Pointer[map[K]S]
	mu    sync.Mutex // for changing known
}

func (s *series[K, S]) get(labels K) S {
	if known := s.known.Load(); known != nil {
		if found, ok := (*known)[labels]; ok {
			return found
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[K]S{labels: s.find(labels)}
	if known := s.known.Load(); known != nil {
		maps.Copy(next, *known)
	}
	s.known.Store(&next)
	return next[labels]
}

// forget makes the next get of these labels call find again.
func (s *series[K, S]) forget(labels K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.known.Load(); known != nil {
		rest := maps.Clone(*known)
		delete(rest, labels)
		s.known.Store(&rest)
	}
}

// only finds these labels at once, and forgets all others. One get for each would copy the map
// each time.
func (s *series[K, S]) only(labels []K) {
	found := make(map[K]S, len(labels))
	for _, l := range labels {
		found[l] = s.find(l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known.Store(&found)
}
