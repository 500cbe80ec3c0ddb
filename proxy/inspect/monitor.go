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
	// lookEvery is the interval between two looks. Servers may be replaced or upgraded
	// behind their addresses.
	lookEvery = 30 * time.Second
	// lookSoon is the interval if a server did not answer or cannot vote.
	lookSoon = 5 * time.Second
)

// A Monitor keeps the servers' answers about themselves, for clients and for the router.
// Only one goroutine at a time may call Look, Report and Run, and another one WatchUpstream. Any
// goroutine may call the other methods at any time.
type Monitor struct {
	current *config.Active
	meter   *metrics.Metrics
	log     *slog.Logger
	again   chan struct{} // a reload wants a look now
	wake    chan struct{} // WatchUpstream does

	shown     atomic.Value // string: the version shown to clients
	upstream  atomic.Pointer[Upstream]
	available atomic.Int64 // databases of the upstream; 0: unknown
	answers   atomic.Int64 // Looks that the upstream has answered
	blank     atomic.Bool  // all masters answered the last Look, and none had a marker

	versions    map[string]string // by the server's name, including servers now unreachable
	upstreamRun string            // the run_id of the upstream whose commands the router knows
	warned      []Hazard          // those of the last Report
	rights      knownRights
}

// NewMonitor makes a Monitor that has asked no server yet. Its Look asks the servers of
// current's configuration, puts the upstream's commands into current's router, and
// reports to meter and log.
func NewMonitor(current *config.Active, meter *metrics.Metrics, log *slog.Logger) *Monitor {
	s := &Monitor{current: current, meter: meter, log: log, again: make(chan struct{}, 1), wake: make(chan struct{}, 1), versions: map[string]string{}, rights: knownRights{}}
	s.shown.Store(s.lowest(current.Load().Config))
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

// Soon makes Run look at once, after a change of the configuration. It does not wait.
func (s *Monitor) Soon() {
	select {
	case s.again <- struct{}{}:
	default:
	}
}

// Look asks all servers once, for about 2 s at most. It returns the hazards and shows
// them as metrics.
func (s *Monitor) Look(ctx context.Context) []Hazard {
	cfg := s.current.Load().Config
	upstream, masters := s.rights.askServers(ctx, cfg)
	s.rights.remember(masters)
	s.sees(upstream, time.Now())
	all := masters
	if upstream != nil {
		all = append(slices.Clone(masters), *upstream)
		if upstream.Err == nil {
			s.answers.Add(1)
		}
		if upstream.databases > 0 {
			s.available.Store(int64(upstream.databases))
		}
		if upstream.Err == nil && (upstream.runID == "" || upstream.runID != s.upstreamRun) {
			if upstream.runID != "" && s.upstreamRun != "" {
				s.log.Info("upstream restarted or replaced", "upstream", upstream.Name, "run_id", shortRunID(upstream.runID))
			}
			s.learnCommands(ctx, cfg.Upstream.Server, upstream.runID)
		}
	}
	for _, f := range all {
		if f.Version != "" {
			s.versions[f.Name] = f.Version
		}
	}
	s.shown.Store(s.lowest(cfg))
	s.blank.Store(haveNoMarker(masters))
	hazards := Hazards(cfg, upstream, masters)
	s.meter.ShowHazards(shownHazards(hazards))
	return hazards
}

// lowest is the version to show: the lowest among the servers that are configured now
// and have ever reported their version.
func (s *Monitor) lowest(cfg *config.Config) string {
	var versions []string
	if cfg.Masters.Embedded || cfg.Upstream.Kind == config.UpstreamEmbedded {
		versions = append(versions, embedded.Version)
	}
	for _, name := range append(cfg.Masters.Names(), cfg.Upstream.Server.Name) {
		versions = append(versions, s.versions[name])
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

// shownHazards converts hazards for the metrics.
func shownHazards(hazards []Hazard) []metrics.Hazard {
	shown := make([]metrics.Hazard, len(hazards))
	for i, h := range hazards {
		shown[i] = metrics.Hazard{Kind: h.kind, Server: h.server, Detail: h.detail}
	}
	return shown
}

// Report logs the hazards that the last Report did not have, and those that are over. While a
// server is unreachable or refuses INFO, nobody knows which of its other hazards are, nor which
// hazards that compare it with another server. It logs nothing of a server that is unreachable or
// cannot vote: package redlock logs the states of masters, and Look that of the upstream.
func (s *Monitor) Report(hazards []Hazard) {
	for _, hazard := range hazards {
		switch sameText := func(w Hazard) bool { return w.text == hazard.text }; {
		case hazard.level == hazardAbsent, slices.ContainsFunc(s.warned, sameText):
		case hazard.level == hazardWarning:
			s.log.Warn(hazard.text)
		default:
			s.log.Error(hazard.text)
		}
	}
	for _, w := range s.warned {
		goesOn := func(h Hazard) bool {
			if h.kind == "untold" || h.kind == "unreachable" && h.server != "" {
				return h.server == w.server || w.kind == "databases" || w.kind == "duplicate" || w.kind == "shared"
			}
			return h.server == w.server && h.kind == w.kind && h.detail == w.detail
		}
		if w.level != hazardAbsent && !slices.ContainsFunc(hazards, goesOn) {
			s.log.Info("a hazard is over", "hazard", w.text)
		}
	}
	s.warned = hazards
}

// Run looks and reports regularly until ctx ends. hazards are those of the last Look. If
// a server was unreachable or could not vote, Run looks sooner.
func (s *Monitor) Run(ctx context.Context, hazards []Hazard) {
	for {
		pause := lookEvery
		if slices.ContainsFunc(hazards, func(h Hazard) bool { return h.level == hazardAbsent }) {
			pause = lookSoon
		}
		select {
		case <-ctx.Done():
			return
		case <-s.again:
			clear(s.rights) // another user may ask now
		case <-s.wake:
		case <-time.After(pause):
		}
		hazards = s.Look(ctx)
		if ctx.Err() == nil {
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
