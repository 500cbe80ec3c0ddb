package proxy

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/redlock"
)

// standingLog is told of the lock plane what metrics are told, and logs each
// change of a master's state besides, and within a state each reason once: that
// of a master that is away may go to and fro with every redial. That a master
// which has just been reached does not vote yet is told only where that lasts.
type standingLog struct {
	*metrics.Metrics
	log *slog.Logger

	mu   sync.Mutex
	told map[string]toldStanding // by the master's name
}

type toldStanding struct {
	state   redlock.MasterState
	reasons []string
	now     string // the reason it stands so for now
}

// uncertifiedPause is how long a master that answers may take to be certified
// before the log has it. Its clock is watched first, and its marker written.
const uncertifiedPause = 10 * time.Second

// maxReasons bounds how many reasons for one state are told: servers word them.
const maxReasons = 8

func newStandingLog(m *metrics.Metrics, log *slog.Logger) *standingLog {
	return &standingLog{Metrics: m, log: log, told: map[string]toldStanding{}}
}

// news takes how a master stands. It returns its state before, and whether there
// is something to tell and to count.
func (o *standingLog) news(s redlock.MasterStatus) (before redlock.MasterState, tell, count bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	told, known := o.told[s.Name] // of one that was never seen: away
	before = told.state
	if count = !known || told.state != s.State; count {
		told = toldStanding{state: s.State}
	}
	if tell = len(told.reasons) < maxReasons && !slices.Contains(told.reasons, s.Reason); tell {
		told.reasons = append(told.reasons, s.Reason)
	}
	told.now = s.Reason
	o.told[s.Name] = told
	return before, tell, count
}

// Standing implements redlock.Observer. What is worse than before is a warning.
func (o *standingLog) Standing(s redlock.MasterStatus) {
	before, tell, count := o.news(s)
	if count {
		o.Metrics.Standing(s)
	}
	begins := s.State == redlock.Uncertified && (before == redlock.Away || before == redlock.Uncertified)
	switch {
	case tell && begins:
		time.AfterFunc(uncertifiedPause, func() {
			if o.stands(s) {
				o.write(s)
			}
		})
	case tell:
		o.write(s)
	}
}

// stands tells whether that is how the master stands now.
func (o *standingLog) stands(s redlock.MasterStatus) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.told[s.Name]
	return told.state == s.State && told.now == s.Reason
}

func (o *standingLog) write(s redlock.MasterStatus) {
	level, text := slog.LevelWarn, ""
	switch s.State {
	case redlock.Certified:
		level, text = slog.LevelInfo, "a lock master votes"
	case redlock.Uncertified:
		text = "a lock master answers and does not vote"
	case redlock.Quarantined:
		text = "a lock master is in quarantine: it is asked everything and its votes do not count"
	case redlock.Barred:
		text = "a lock master must not vote"
	default:
		text = "a lock master is away: locks do without it, and releases wait for it"
	}
	fields := []any{"master", s.Name, "state", s.State.String()}
	if s.Reason != "" {
		fields = append(fields, "reason", s.Reason)
	}
	if !s.Until.IsZero() {
		fields = append(fields, "until", config.Timestamp(s.Until))
	}
	o.log.Log(context.Background(), level, text, fields...)
}

// masterStates are all states there are, for one series each.
var masterStates = []redlock.MasterState{redlock.Away, redlock.Uncertified, redlock.Quarantined, redlock.Certified, redlock.Barred}

// standingCollector shows how the masters stand whenever metrics are read. A
// master that was replaced is not shown any more.
type standingCollector struct{ status func() redlock.Status }

var (
	stateMetric      = standingMetric("master_state", "1 for the state that a master is in, 0 for the others.", "master", "state")
	quarantineMetric = standingMetric("master_quarantine_end_timestamp_seconds", "When a quarantined master will vote again if nothing happens.", "master")
	longestMetric    = standingMetric("master_longest_ttl_seconds", "The longest TTL granted, as the master's marker has it, up to max_quarantine.", "master")
	neededMetric     = standingMetric("masters_needed", "How many masters must vote alike to decide.")
	configuredMetric = standingMetric("masters_configured", "How many masters there are.")
	epochMetric      = standingMetric("set_epoch", "How often a master of the set was replaced, counted from 1; 0 as long as there is no set.")
	readyMetric      = standingMetric("ready", "1 while enough masters vote to decide locks.")
)

// movesCollector shows which keys are held back because lock rules were changed.
type movesCollector struct{ current *config.Active }

var (
	movingMetric    = standingMetric("moving_rules", "How many lock rules have keys that are answered TRYAGAIN, for the rules were changed.")
	movingEndMetric = standingMetric("moving_rule_end_timestamp_seconds", "Until when commands on keys of a lock rule are answered TRYAGAIN, for the rules were changed.", "rule")
)

// Describe implements prometheus.Collector.
func (movesCollector) Describe(out chan<- *prometheus.Desc) {
	out <- movingMetric
	out <- movingEndMetric
}

// Collect implements prometheus.Collector.
func (c movesCollector) Collect(out chan<- prometheus.Metric) {
	moving := c.current.Load().Router.Moving(time.Now())
	out <- prometheus.MustNewConstMetric(movingMetric, prometheus.GaugeValue, float64(len(moving)))
	for _, m := range moving {
		out <- prometheus.MustNewConstMetric(movingEndMetric, prometheus.GaugeValue, float64(m.Until.UnixMilli())/1000, strings.ToValidUTF8(config.DescribeCoverage(m.Rule), "\uFFFD"))
	}
}

func standingMetric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("redlock_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (standingCollector) Describe(out chan<- *prometheus.Desc) {
	for _, metric := range []*prometheus.Desc{
		stateMetric, quarantineMetric, longestMetric, neededMetric, configuredMetric, epochMetric, readyMetric,
	} {
		out <- metric
	}
}

// Collect implements prometheus.Collector.
func (c standingCollector) Collect(out chan<- prometheus.Metric) {
	status := c.status()
	gauge := func(metric *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(metric, prometheus.GaugeValue, value, labels...)
	}
	for _, master := range status.Masters {
		for _, state := range masterStates {
			gauge(stateMetric, oneIf(master.State == state), master.Name, state.String())
		}
		if master.State == redlock.Quarantined && !master.Until.IsZero() {
			gauge(quarantineMetric, float64(master.Until.UnixMilli())/1000, master.Name)
		}
		gauge(longestMetric, master.Longest.Seconds(), master.Name)
	}
	gauge(neededMetric, float64(status.Needed))
	gauge(configuredMetric, float64(len(status.Masters)))
	gauge(epochMetric, float64(status.Epoch))
	gauge(readyMetric, oneIf(status.Ready()))
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
