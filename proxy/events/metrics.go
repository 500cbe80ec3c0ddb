package events

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/redlock"
)

// A table has a row for each metric that counts events: its name behind redlock_, its labels, and what it
// tells. They are labelled by names from closed sets and the names of masters and rules. They are never
// labelled by a key, and never by a value, which is a secret.
type table struct {
	// Of the commands on lock keys.
	CommandCounts *prometheus.CounterVec   `name:"lock_commands_total" labels:"kind verdict rule" help:"Lock commands answered, by kind, verdict and the rule that makes their key a lock key."`
	CommandTimes  *prometheus.HistogramVec `name:"lock_command_duration_seconds" labels:"kind" buckets:"locks" help:"Time from the arrival of a lock command to its reply, retries included."`
	BallotTimes   *prometheus.HistogramVec `name:"ballot_duration_seconds" labels:"kind verdict" buckets:"locks" help:"Time from the first byte of a ballot to its verdict."`
	WithoutTTL    prometheus.Counter       `name:"locks_without_ttl_total" help:"Locks taken without a TTL. Only a release ends them."`
	Beyond        prometheus.Counter       `name:"locks_beyond_quarantine_total" help:"Locks taken for longer than max_quarantine. No quarantine covers them."`
	LockWait      *prometheus.HistogramVec `name:"lock_wait_seconds" labels:"rule" buckets:"holds" help:"Time from a client's first try to take a lock to its grant, by rule."`
	LockHold      *prometheus.HistogramVec `name:"lock_hold_seconds" labels:"rule" buckets:"holds" help:"Time from a lock's grant to its release, if both went through this proxy, by rule."`
	Waiting       *prometheus.GaugeVec     `name:"waiting_acquires" labels:"rule" help:"Acquires held back now by their rule's wait."`
	Waited        *prometheus.HistogramVec `name:"wait_duration_seconds" labels:"rule outcome" buckets:"waits" help:"How long acquires were held back, by rule and outcome: granted, refused (the time was over), gone (the client left) or error."`
	WakeUps       *prometheus.CounterVec   `name:"wakeups_total" labels:"kind" from0:"message invalidation" help:"Messages and invalidations from the masters sent to clients."`
	Listeners     prometheus.Gauge         `name:"clients_listening" help:"Clients that are subscribed to channels of locks or track lock keys."`
	Ended         *prometheus.CounterVec   `name:"listeners_ended_total" labels:"reason" from0:"gap overflow" help:"Subscribed clients disconnected because they may have missed messages (gap) or did not read them (overflow)."`

	// Of the masters.
	Votes        *prometheus.CounterVec   `name:"votes_total" labels:"master vote" help:"Votes by master: granted, refused, failed, or discounted (the master answered but may not vote)."`
	VoteTimes    *prometheus.HistogramVec `name:"vote_duration_seconds" labels:"master" buckets:"locks" help:"Time from the first byte of a ballot to the answer of the master."`
	UndoneGrants *prometheus.CounterVec   `name:"undone_grants_total" labels:"master" help:"Grants taken back from a master because the ballot was not won."`
	QueuedFor    *prometheus.GaugeVec     `name:"queued_for_master" labels:"master" help:"Undos and releases queued for an unreachable master."`
	StateChanges *prometheus.CounterVec   `name:"master_state_changes_total" labels:"master state" help:"Changes of a master's state, by the state it came to."`
	Amnesia      *prometheus.CounterVec   `name:"master_quarantines_begun_total" labels:"master cause" help:"Quarantines of a master that this proxy recorded, by cause: emptied, restarted, clock_jumped or replaced."`
	HealedCopies *prometheus.CounterVec   `name:"healed_copies_total" labels:"master result" help:"Copies of locks for masters that lacked them: written, refused (by the master) or too_large."`
	HealPasses   *prometheus.CounterVec   `name:"heal_passes_total" labels:"result" from0:"complete incomplete" help:"Passes of healing over all keys: complete, or incomplete (something was lacking at the end)."`
	HealedAt     prometheus.Gauge         `name:"heal_complete_timestamp_seconds" help:"When the last complete pass of healing began; 0: there was none."`
	Timeout      prometheus.Gauge         `name:"master_timeout_seconds" help:"How long a ballot waits for a master."`

	// Of the clients and the upstream.
	Forwards       prometheus.Counter     `name:"forwarded_commands_total" help:"Commands forwarded to the upstream."`
	Clients        prometheus.Gauge       `name:"clients_connected" help:"Clients connected now."`
	ClientsLimit   prometheus.Gauge       `name:"clients_limit" help:"Maximum number of connected clients."`
	Limits         *prometheus.CounterVec `name:"limit_reached_total" labels:"limit" help:"How often a limit refused or disconnected a client, or failed a command (for scripts: texts forgotten)."`
	Refusals       *prometheus.CounterVec `name:"refused_commands_total" labels:"reason" from0:"crosslock tryagain noupstream" help:"Commands refused because they mix lock keys and other keys (crosslock), because the lock rules moved their keys (tryagain), or because they need the upstream and there is none or it cannot be reached (noupstream)."`
	RefusedLogins  prometheus.Counter     `name:"logins_refused_total" help:"AUTH and HELLO commands with a wrong user name or password."`
	Handshakes     prometheus.Counter     `name:"tls_handshakes_failed_total" help:"TLS handshakes that failed."`
	ProtocolErrors prometheus.Counter     `name:"protocol_errors_total" help:"Clients disconnected because they did not send valid Redis protocol."`
	DialFailures   prometheus.Counter     `name:"upstream_dial_failures_total" help:"Failed attempts to reach the upstream for a client."`
	BadReplies     prometheus.Counter     `name:"upstream_protocol_errors_total" help:"Connections to the upstream that were closed because it sent an invalid or unexpected reply."`
	Panics         prometheus.Counter     `name:"panics_recovered_total" help:"Clients disconnected because of a bug in the proxy."`

	// Of the operator.
	BuildInfo   *prometheus.GaugeVec   `name:"build_info" labels:"version revision goversion" help:"Always 1; the labels show what this process was built from."`
	Hazards     *prometheus.GaugeVec   `name:"hazards" labels:"kind server detail" help:"Hazards to locks, by kind, server and what is missing there."`
	Reloads     *prometheus.CounterVec `name:"config_reloads_total" labels:"result" from0:"applied refused" help:"Reloads of the configuration: applied or refused."`
	Reloaded    prometheus.Gauge       `name:"config_last_reload_successful" help:"1 if the last reload was applied or there was none, else 0."`
	ActiveSince prometheus.Gauge       `name:"config_in_force_timestamp_seconds" help:"When the active configuration became active."`
	Hash        prometheus.Gauge       `name:"config_hash" help:"Hash of the active masters, rules and times. Proxies over the same masters should show the same."`
}

// buckets are the bounds of histograms, in seconds.
var buckets = map[string][]float64{
	// A lock command takes a round trip to the second-fastest or third-fastest master. That
	// is from a tenth of a millisecond, if the masters are near, to a ballot's deadline and a
	// few retries.
	"locks": {.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
	// Clients wait for a lock for up to minutes, and hold it for up to an hour.
	"holds": {.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
	// A wait is far longer than a ballot, and at most an hour.
	"waits": {.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
}

// register makes the metric of each row, with the series that exist from the start, and registers it.
func (t *table) register(reg prometheus.Registerer) error {
	rows := reflect.ValueOf(t).Elem()
	for i := range rows.NumField() {
		row := rows.Type().Field(i).Tag
		name, help, labels := "redlock_"+row.Get("name"), row.Get("help"), strings.Fields(row.Get("labels"))
		var made prometheus.Collector
		switch place := rows.Field(i).Addr().Interface().(type) {
		case *prometheus.Counter:
			*place = prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
			made = *place
		case *prometheus.Gauge:
			*place = prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
			made = *place
		case **prometheus.CounterVec:
			*place = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
			for _, value := range strings.Fields(row.Get("from0")) {
				(*place).WithLabelValues(value)
			}
			made = *place
		case **prometheus.GaugeVec:
			*place = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
			made = *place
		case **prometheus.HistogramVec:
			*place = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets[row.Get("buckets")]}, labels)
			made = *place
		}
		if err := reg.Register(made); err != nil {
			return err
		}
	}
	return nil
}

// Metrics are all metrics of the proxy that count events.
type Metrics struct {
	of    table
	names Names

	masters  series[string, masterSeries]
	ballots  series[ballotLabels, prometheus.Observer]
	commands series[commandLabels, commandSeries]
	locks    series[string, lockSeries] // by rule

	messages, invalidations prometheus.Counter            // of WakeUps
	refused                 map[string]prometheus.Counter // by each of refusals; does not change

	rules        []string // those whose series exist
	hazardsShown []Hazard
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

type lockSeries struct{ wait, hold prometheus.Observer }

// Names are values of labels whose series exist from the start with 0. Otherwise
// Prometheus would see no increase at the first 1.
type Names struct {
	Limits   []string
	Verdicts []string // of lock commands
	Build    []string // version, revision and Go's version
}

// NewMetrics registers all metrics with reg. It returns an error if one of our names is
// registered there already.
func NewMetrics(reg prometheus.Registerer, names Names) (*Metrics, error) {
	m := &Metrics{names: names}
	if err := m.of.register(reg); err != nil {
		return nil, err
	}
	m.of.BuildInfo.WithLabelValues(names.Build...).Set(1)
	m.of.Reloaded.Set(1)
	m.messages, m.invalidations = m.of.WakeUps.WithLabelValues("message"), m.of.WakeUps.WithLabelValues("invalidation")
	m.refused = map[string]prometheus.Counter{}
	for _, code := range refusals {
		m.refused[code] = m.of.Refusals.WithLabelValues(strings.ToLower(code))
	}
	for _, limit := range names.Limits {
		m.of.Limits.WithLabelValues(limit)
	}
	m.masters.find = func(master string) masterSeries {
		found := masterSeries{
			times: m.of.VoteTimes.WithLabelValues(master), undone: m.of.UndoneGrants.WithLabelValues(master), queued: m.of.QueuedFor.WithLabelValues(master),
		}
		for cause := redlock.Emptied; cause <= redlock.Replaced; cause++ {
			m.of.Amnesia.WithLabelValues(master, cause.String()) // exists with 0, as Names says
		}
		for did := redlock.HealWritten; did <= redlock.HealTooLarge; did++ {
			m.of.HealedCopies.WithLabelValues(master, did.String())
		}
		for vote := range found.votes {
			found.votes[vote] = m.of.Votes.WithLabelValues(master, redlock.Vote(vote).String())
		}
		return found
	}
	m.ballots.find = func(labels ballotLabels) prometheus.Observer {
		return m.of.BallotTimes.WithLabelValues(labels.kind.String(), labels.verdict.String())
	}
	m.commands.find = func(labels commandLabels) commandSeries {
		return commandSeries{m.of.CommandCounts.WithLabelValues(labels.kind, labels.verdict, labels.rule), m.of.CommandTimes.WithLabelValues(labels.kind)}
	}
	m.locks.find = func(rule string) lockSeries {
		return lockSeries{m.of.LockWait.WithLabelValues(rule), m.of.LockHold.WithLabelValues(rule)}
	}
	return m, nil
}

// A labelled metric has series for each master, or for each rule.
type labelled interface {
	DeletePartialMatch(labels prometheus.Labels) int
}

// forget deletes the series that have a label with a value.
func forget(label, value string, metrics ...labelled) {
	for _, metric := range metrics {
		metric.DeletePartialMatch(prometheus.Labels{label: value})
	}
}

// ForgetMaster deletes the series of a master that was replaced.
func (m *Metrics) ForgetMaster(name string) {
	m.masters.forget(name)
	forget("master", name, m.of.Votes, m.of.VoteTimes, m.of.UndoneGrants, m.of.QueuedFor, m.of.StateChanges, m.of.Amnesia, m.of.HealedCopies)
}

// rulesInForce makes all series of the current rules, and of those that have a wait, from 0 as Names
// says. It deletes the series of other rules. Only one goroutine at a time may call it.
func (m *Metrics) rulesInForce(rules, waiting []string) {
	for _, rule := range m.rules {
		if !slices.Contains(rules, rule) {
			forget("rule", rule, m.of.CommandCounts, m.of.LockWait, m.of.LockHold, m.of.Waiting, m.of.Waited)
		}
	}
	m.rules = rules
	m.locks.only(rules)
	var labels []commandLabels
	for _, rule := range rules {
		for kind := redlock.KindAcquire; kind <= redlock.KindToken; kind++ {
			for _, verdict := range m.names.Verdicts {
				labels = append(labels, commandLabels{kind.String(), verdict, rule})
			}
		}
	}
	m.commands.only(labels)
	for _, rule := range waiting {
		m.of.Waiting.WithLabelValues(rule)
		for _, outcome := range []string{WaitGranted, WaitRefused, WaitGone, WaitError} {
			m.of.Waited.WithLabelValues(rule, outcome)
		}
	}
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
