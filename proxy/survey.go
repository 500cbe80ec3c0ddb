package proxy

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
	// surveyEvery is how often servers are asked what they are: they may be
	// replaced or upgraded behind their address.
	surveyEvery = 30 * time.Second
	// surveySoon is for when a server did not answer.
	surveySoon = 5 * time.Second
)

// survey keeps what the servers say about themselves for those who show it to
// clients or route by it. look and run are one goroutine's; the rest may be
// called by all.
type survey struct {
	current *config.Active
	meter   *metrics.Metrics
	log     *slog.Logger
	again   chan struct{} // a reload wants a look now

	shown     atomic.Value // string: the version shown to clients
	available atomic.Int64 // databases of the upstream; 0: not known
	blank     atomic.Bool  // all masters answered last, and none had a marker

	versions    map[string]string // by the server's name, also of those now away
	upstreamRun string            // whose commands the router knows
	warned      []string          // hazards logged already
	rights      knownRights
}

func newSurvey(current *config.Active, meter *metrics.Metrics, log *slog.Logger) *survey {
	s := &survey{current: current, meter: meter, log: log, again: make(chan struct{}, 1), versions: map[string]string{}, rights: knownRights{}}
	s.shown.Store(s.lowest(current.Load().Config))
	return s
}

func (s *survey) version() string { return s.shown.Load().(string) }
func (s *survey) databases() int  { return int(s.available.Load()) }

// noMarkers tells whether all masters answered when last asked, and none belongs to
// a set.
func (s *survey) noMarkers() bool { return s.blank.Load() }

// soon has run look at once, for the configuration has changed.
func (s *survey) soon() {
	select {
	case s.again <- struct{}{}:
	default:
	}
}

// look asks all servers once, at most for inspectTimeout and a bit, and
// returns what endangers locks.
func (s *survey) look(ctx context.Context) []hazard {
	cfg := s.current.Load().Config
	upstream, masters := s.rights.askServers(ctx, cfg)
	s.rights.remember(masters)
	all := masters
	if upstream != nil {
		all = append(slices.Clone(masters), *upstream)
		if upstream.databases > 0 {
			s.available.Store(int64(upstream.databases))
		}
		if upstream.err == nil && (upstream.runID == "" || upstream.runID != s.upstreamRun) {
			if upstream.runID != "" && s.upstreamRun != "" {
				s.log.Info("the upstream has been restarted, or another server is the upstream now", "upstream", upstream.name, "run_id", shortRunID(upstream.runID))
			}
			s.learnCommands(ctx, cfg.Upstream.Server, upstream.runID)
		}
	}
	for _, f := range all {
		if f.version != "" {
			s.versions[f.name] = f.version
		}
	}
	s.shown.Store(s.lowest(cfg))
	s.blank.Store(haveNoMarker(masters))
	hazards := hazardsOf(cfg, upstream, masters)
	s.meter.ShowHazards(shownHazards(hazards))
	return hazards
}

// lowest is the version to show: of the servers that are configured now, as
// far as they have ever told theirs.
func (s *survey) lowest(cfg *config.Config) string {
	versions := map[string]string{}
	if cfg.Masters.Embedded || cfg.Upstream.Kind == config.UpstreamEmbedded {
		versions["embedded"] = embedded.Version
	}
	for _, name := range append(cfg.Masters.Names(), cfg.Upstream.Server.Name) {
		if version := s.versions[name]; version != "" {
			versions[name] = version
		}
	}
	return lowestVersion(versions)
}

// learnCommands adds the commands that only this upstream knows. Without them
// all else still works: an unknown command is forwarded as it is.
func (s *survey) learnCommands(ctx context.Context, upstream endpoint.Endpoint, runID string) {
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
	s.log.Info("the upstream does not tell its commands; the built-in table is used", "error", err)
	s.upstreamRun = runID
}

// shownHazards are hazards in the metrics' words.
func shownHazards(hazards []hazard) []metrics.Hazard {
	shown := make([]metrics.Hazard, len(hazards))
	for i, h := range hazards {
		shown[i] = metrics.Hazard{Kind: h.kind, Server: h.server, Detail: h.detail}
	}
	return shown
}

// report logs each hazard when it is first seen.
func (s *survey) report(hazards []hazard) {
	texts := make([]string, 0, len(hazards))
	for _, hazard := range hazards {
		texts = append(texts, hazard.text)
		if slices.Contains(s.warned, hazard.text) {
			continue
		}
		if hazard.level == hazardWarning {
			s.log.Warn(hazard.text)
		} else {
			s.log.Error(hazard.text)
		}
	}
	s.warned = texts
}

// run looks again and again until ctx ends.
func (s *survey) run(ctx context.Context, hazards []hazard) {
	for {
		pause := surveyEvery
		if slices.ContainsFunc(hazards, func(h hazard) bool { return h.level == hazardAbsent }) {
			pause = surveySoon
		}
		select {
		case <-ctx.Done():
			return
		case <-s.again:
			clear(s.rights) // another user may ask now
		case <-time.After(pause):
		}
		hazards = s.look(ctx)
		if ctx.Err() == nil {
			s.report(hazards)
		}
	}
}

// lowestVersion is the one that every server has the commands of; clients
// choose commands by it. Empty if nothing is known.
func lowestVersion(versions map[string]string) string {
	lowest := ""
	for _, version := range versions {
		if lowest == "" || slices.Compare(versionNumbers(version), versionNumbers(lowest)) < 0 {
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
