package inspect

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/embedded"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/metrics"
)

const (
	// lookEvery is the interval between two looks. The upstream may hang, and certificates end.
	lookEvery = 30 * time.Second
	// lookSoon is the interval if a server did not answer.
	lookSoon = 5 * time.Second
)

// A Monitor keeps the servers' answers about themselves, for clients and for the router.
// Only one goroutine at a time may call Look, Report and Run, and another one WatchUpstream. Any
// goroutine may call the other methods at any time.
type Monitor struct {
	current *config.Active
	meter   *metrics.Metrics
	log     *slog.Logger
	wake    chan struct{} // a look is wanted now

	shown     atomic.Value // string: the version shown to clients
	upstream  atomic.Pointer[Upstream]
	available atomic.Int64 // databases of the upstream; 0: unknown
	answers   atomic.Int64 // Looks that the upstream has answered
	blank     atomic.Bool  // all masters answered the last Look, and none had a marker

	asked       *config.Config   // the configuration for which the masters were asked last
	askedAt     time.Time        // when that began
	said        map[string]Facts // the last answers of each server, by its id
	upstreamRun string           // the run_id of the upstream whose commands the router knows
	warned      []Hazard         // those of the last Report
}

// NewMonitor makes a Monitor that has asked no server yet. Its Look asks the servers of
// current's configuration, puts the upstream's commands into current's router, and
// reports to meter and log.
func NewMonitor(current *config.Active, meter *metrics.Metrics, log *slog.Logger) *Monitor {
	s := &Monitor{current: current, meter: meter, log: log, wake: make(chan struct{}, 1)}
	s.shown.Store(lowest(current.Load().Config, nil))
	return s
}

// Version is the lowest version of Redis among the servers, because clients choose
// commands by it. It is "" until a server has reported its version.
func (s *Monitor) Version() string { return s.shown.Load().(string) }

// Databases is the number of databases of the upstream, or 0 if it is unknown.
func (s *Monitor) Databases() int { return int(s.available.Load()) }

// Answers is the number of Looks that the upstream has answered.
func (s *Monitor) Answers() int64 { return s.answers.Load() }

// NoMarkers tells whether all masters answered the last Look and none had a marker.
func (s *Monitor) NoMarkers() bool { return s.blank.Load() }

// Soon makes Run look at once. It does not wait.
func (s *Monitor) Soon() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Look asks the upstream, and each master that has not answered since the start or the last reload, for
// about 2 s at most. It returns the hazards, and shows them as metrics, but for those that a running process
// knows better: package redlock has the states of masters, and Upstream tells that of the upstream.
func (s *Monitor) Look(ctx context.Context) []Hazard {
	cfg, now := s.current.Load().Config, time.Now()
	known := s.said
	if cfg != s.asked || cfg.NewSet && now.Sub(s.askedAt) >= newSetPause {
		s.asked, s.askedAt, known = cfg, now, nil
	}
	upstream, masters := askServers(ctx, cfg, known)
	s.sees(upstream, now)
	all := map[string]Facts{}
	for i := range masters {
		masters[i].keep(s.said)
		all[masters[i].id()] = masters[i]
	}
	if upstream != nil {
		upstream.keep(s.said)
		all[upstream.id()] = *upstream
		if upstream.databases > 0 {
			s.available.Store(int64(upstream.databases))
		}
	}
	s.said = all
	if upstream != nil && upstream.Err == nil {
		s.answers.Add(1)
		if upstream.runID == "" || upstream.runID != s.upstreamRun {
			if upstream.runID != "" && s.upstreamRun != "" {
				s.log.Info("upstream restarted or replaced", "upstream", upstream.Name, "run_id", shortRunID(upstream.runID))
			}
			s.learnCommands(ctx, cfg.Upstream.Server, upstream.runID)
		}
	}
	s.shown.Store(lowest(cfg, all))
	s.blank.Store(haveNoMarker(masters))
	hazards := slices.DeleteFunc(Hazards(cfg, upstream, masters), func(h Hazard) bool { return h.level == hazardAbsent })
	shown := make([]metrics.Hazard, len(hazards))
	for i, h := range hazards {
		shown[i] = metrics.Hazard{Kind: h.kind, Server: h.server, Detail: h.detail}
	}
	s.meter.ShowHazards(shown)
	return hazards
}

// keep adds what a server that does not answer said before. That may still be so.
func (f *Facts) keep(said map[string]Facts) {
	if before, ok := said[f.id()]; ok && f.Err != nil {
		before.Err = f.Err
		*f = before
	}
}

// lowest is the version to show: the lowest among the servers that have ever reported theirs.
func lowest(cfg *config.Config, said map[string]Facts) string {
	var versions []string
	if cfg.Masters.Embedded || cfg.Upstream.Kind == config.UpstreamEmbedded {
		versions = append(versions, embedded.Version)
	}
	for _, f := range said {
		versions = append(versions, f.Version)
	}
	return lowestVersion(versions)
}

// learnCommands adds the commands that only this upstream knows to the router. If that
// fails, everything else still works: the proxy forwards an unknown command as it is, unless an
// argument is a lock key.
func (s *Monitor) learnCommands(ctx context.Context, upstream endpoint.Endpoint, runID string) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	client := redis.NewClient(upstream.Options())
	defer client.Close()
	reply, err := client.Do(ctx, "COMMAND").Slice()
	if err == nil {
		var table *command.Table
		if table, err = command.Builtin().With(reply); err == nil {
			s.current.Replace(func(old config.Settings) config.Settings {
				old.Router = old.Router.WithTable(table)
				return old
			})
			s.upstreamRun = runID
			return
		}
	}
	s.log.Info("cannot read the commands of the upstream; commands that this proxy does not know are refused if they name a lock key", "error", err)
	s.upstreamRun = runID
}

// Report logs the hazards that the last Report did not have, and those that are over.
func (s *Monitor) Report(hazards []Hazard) {
	for _, h := range hazards {
		switch sameText := func(w Hazard) bool { return w.text == h.text }; {
		case slices.ContainsFunc(s.warned, sameText):
		case h.level == hazardWarning:
			s.log.Warn(h.text)
		default:
			s.log.Error(h.text)
		}
	}
	for _, w := range s.warned {
		goesOn := func(h Hazard) bool { return h.server == w.server && h.kind == w.kind && h.detail == w.detail }
		if !slices.ContainsFunc(hazards, goesOn) {
			s.log.Info("a hazard is over", "hazard", w.text)
		}
	}
	s.warned = hazards
}

// Run looks and reports until ctx ends: regularly, and sooner if a server did not answer.
func (s *Monitor) Run(ctx context.Context) {
	for {
		pause := lookEvery
		for _, f := range s.said {
			if f.Err != nil {
				pause = lookSoon
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-time.After(pause):
		}
		if hazards := s.Look(ctx); ctx.Err() == nil {
			s.Report(hazards)
		}
	}
}

// lowestVersion returns the lowest version, whose commands every server has. It leaves out
// empty ones, and returns "" if there is no other.
func lowestVersion(versions []string) string {
	lowest := ""
	for _, version := range versions {
		if lowest == "" || version != "" && slices.Compare(versionNumbers(version), versionNumbers(lowest)) < 0 {
			lowest = version
		}
	}
	return lowest
}

func versionNumbers(version string) []int {
	var numbers []int
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		numbers = append(numbers, n)
	}
	return numbers
}
