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

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/embedded"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
)

const (
	// lookEvery is the interval between two looks. The upstream may hang, and certificates end.
	lookEvery = 30 * time.Second
	// lookAgain is the interval if a master did not answer.
	lookAgain = 5 * time.Second
	// lookSoon is the interval if the upstream did not answer: its clients wait for it.
	lookSoon = time.Second
)

// A Monitor keeps the servers' answers about themselves, for clients and for the router. One goroutine may
// call Run. Any goroutine may call the other methods at any time.
type Monitor struct {
	current *config.Active
	meter   *events.Metrics
	log     *slog.Logger
	fresh   chan Answers // those of a reload

	shown     atomic.Value // string: the version shown to clients
	upstream  atomic.Pointer[Upstream]
	available atomic.Int64 // databases of the upstream; 0: unknown
	answers   atomic.Int64 // how often the upstream has answered

	// These belong to NewMonitor, and then to Run.
	started     time.Time
	known       Answers
	hazards     []Hazard  // of known
	warned      []Hazard  // those of the last report
	upstreamRun string    // the run_id of the upstream whose commands the router knows
	held        time.Time // when the upstream was dialled last to wait for its end
}

// An Upstream is the upstream outside this process, as the last look found it.
type Upstream struct {
	Name    string
	Problem string    // why it cannot be used; empty: it can
	Since   time.Time // when that, or its use, began for this process
}

// NewMonitor makes a Monitor that knows the answers of current's servers. It puts the upstream's commands into
// current's router, and reports to meter. Run reports to log.
func NewMonitor(ctx context.Context, current *config.Active, meter *events.Metrics, log *slog.Logger, answers Answers) *Monitor {
	s := &Monitor{current: current, meter: meter, log: log, fresh: make(chan Answers, 1), started: time.Now()}
	s.learn(ctx, answers)
	return s
}

// Upstream returns the upstream outside this process. ok is false if there is none.
func (s *Monitor) Upstream() (u Upstream, ok bool) {
	if seen := s.upstream.Load(); seen != nil {
		return *seen, true
	}
	return Upstream{}, false
}

// Version is the lowest version of Redis among the servers, because clients choose
// commands by it. It is "" until a server has reported its version.
func (s *Monitor) Version() string { return s.shown.Load().(string) }

// Databases is the number of databases of the upstream, or 0 if it is unknown.
func (s *Monitor) Databases() int { return int(s.available.Load()) }

// Answers is the number of times that the upstream has answered.
func (s *Monitor) Answers() int64 { return s.answers.Load() }

// Use makes Run go on with the answers of a reload. Only one goroutine at a time may call it.
func (s *Monitor) Use(answers Answers) {
	select {
	case <-s.fresh:
	default:
	}
	s.fresh <- answers
}

// Run reports the hazards, and looks again until ctx ends: regularly, sooner if a server did not answer, and
// at once when the upstream's connection ends.
func (s *Monitor) Run(ctx context.Context) {
	for ctx.Err() == nil {
		s.report()
		pause := s.known.pause()
		ended, release := s.hold(ctx)
		next := Answers{}
		select {
		case next = <-s.fresh:
		case <-ended:
		case <-time.After(pause):
		}
		release()
		if next.Config == nil {
			next = s.known.again(ctx)
		}
		if ctx.Err() == nil {
			s.learn(ctx, next)
		}
	}
}

// pause is the time until the next look.
func (a Answers) pause() time.Duration {
	switch {
	case a.Upstream != nil && a.Upstream.Err != nil:
		return lookSoon
	case slices.ContainsFunc(a.Masters, func(f Facts) bool { return f.Err != nil }):
		return lookAgain
	}
	return lookEvery
}

// hold keeps one idle connection to the upstream, if that can be used. ended is closed when the connection
// or ctx has ended. No command is sent there, because a client's MONITOR would show it.
func (s *Monitor) hold(ctx context.Context) (ended <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if up := s.known.Upstream; up == nil || up.Err != nil {
			<-ctx.Done()
			return
		}
		select {
		case <-time.After(time.Until(s.held.Add(lookSoon))):
		case <-ctx.Done():
			return
		}
		s.held = time.Now()
		dialing, cancel := context.WithTimeout(ctx, inspectTimeout)
		defer cancel()
		if conn, err := s.known.Config.Upstream.Server.Dial(dialing); err == nil {
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			_, _ = conn.Read(make([]byte, 1)) // nothing was asked
		}
	}()
	return done, func() { cancel(); <-done }
}

// learn makes answers the known ones. It shows the hazards as metrics, but for those that a running process
// knows better: package redlock has the states of masters, and Upstream tells that of the upstream.
func (s *Monitor) learn(ctx context.Context, answers Answers) {
	answers = answers.recalling(s.known)
	cfg, now := answers.Config, time.Now()
	s.known = answers
	s.sees(answers.Upstream, now)
	if up := answers.Upstream; up != nil && up.Err == nil {
		s.answers.Add(1)
		if up.Databases > 0 {
			s.available.Store(int64(up.Databases))
		}
		if up.RunID == "" || up.RunID != s.upstreamRun {
			if up.RunID != "" && s.upstreamRun != "" {
				s.log.Info("upstream restarted or replaced", "upstream", up.Name, "run_id", shortRunID(up.RunID))
			}
			s.learnCommands(ctx, cfg.Upstream.Server, up.RunID)
		}
	}
	var versions []string
	if cfg.Masters.Embedded || cfg.Upstream.Kind == config.UpstreamEmbedded {
		versions = append(versions, embedded.Version)
	}
	for _, f := range answers.all() {
		versions = append(versions, f.Version)
	}
	s.shown.Store(lowestVersion(versions))
	found := hazardList(slices.DeleteFunc(answers.Hazards(), func(h Hazard) bool { return h.Level == hazardAbsent }))
	if cfg.NewSet && len(cfg.DemoServers) == 0 && now.Sub(s.started) >= newSetPause {
		found.add(hazardWarning, kindNewSet, "", "this process was started with -new more than %s ago; %s", config.ShortDuration(newSetPause), takeNewOut)
	}
	s.hazards = found
	shown := make([]events.Hazard, len(found))
	for i, h := range found {
		shown[i] = h.Hazard
	}
	s.meter.ShowHazards(shown)
}

// sees records what a look found of the upstream. It logs once that it cannot be used, and once that
// it can be used again.
func (s *Monitor) sees(f *Facts, now time.Time) {
	if f == nil {
		s.upstream.Store(nil)
		return
	}
	seen := Upstream{Name: f.Name, Since: now}
	if f.Err != nil {
		seen.Problem = f.Err.Error()
	}
	before, known := s.Upstream()
	known = known && before.Name == f.Name
	changed := (before.Problem == "") != (seen.Problem == "")
	if known && !changed {
		seen.Since = before.Since
	}
	s.upstream.Store(&seen)
	switch {
	case seen.Problem != "" && (!known || changed):
		s.log.Error("the upstream cannot be used: clients hear NOUPSTREAM, but for locks (deploy/INCIDENTS.md#noupstream)", "upstream", f.Name, "error", seen.Problem)
	case seen.Problem == "" && known && changed:
		s.log.Info("the upstream can be used again", "upstream", f.Name, "after", now.Sub(before.Since).Round(time.Millisecond))
	}
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
		var table *route.Table
		if table, err = route.Builtin().With(reply); err == nil {
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

// report logs the hazards that the last report did not have, and those that are over.
func (s *Monitor) report() {
	for _, h := range s.hazards {
		switch sameText := func(w Hazard) bool { return w.Text == h.Text }; {
		case slices.ContainsFunc(s.warned, sameText):
		case h.Level == hazardWarning:
			s.log.Warn(h.Text)
		default:
			s.log.Error(h.Text)
		}
	}
	for _, w := range s.warned {
		if !slices.ContainsFunc(s.hazards, func(h Hazard) bool { return h.Hazard == w.Hazard }) {
			s.log.Info("a hazard is over", "hazard", w.Text)
		}
	}
	s.warned = s.hazards
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
