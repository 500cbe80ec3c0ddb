package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/heal"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/mend"
	"redlock-proxy/redlock/notify"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/run"
	"redlock-proxy/redlock/token"
)

// Locker asks N masters for locks. It keeps no lock itself, so any number of Lockers may
// use the same masters. Any goroutine may use it.
type Locker struct {
	cfg       atomic.Pointer[Config] // immutable; Masters are those of the start
	observer  Observer
	masters   *master.Set
	lanes     *lane.Lanes[Outcome]
	box       *ballot.Box
	mender    *mend.Mender
	healer    *heal.Healer
	runs      *run.Runner
	tokens    *token.Giver
	listening *notify.Hub
	end       context.CancelFunc // ends everything
	reloads   sync.Mutex         // one reload at a time
}

// New makes a Locker that connects to the masters in the background. The caller must
// Close it. An error says what is wrong with cfg.
func New(cfg Config) (*Locker, error) {
	if len(cfg.Masters) == 0 {
		return nil, errors.New("no lock masters are given")
	}
	if len(cfg.Masters) > quorum.MaxMasters {
		return nil, fmt.Errorf("%d lock masters are given, and there can be %d; five are usual", len(cfg.Masters), quorum.MaxMasters)
	}
	if cfg.MasterTimeout <= 0 {
		return nil, errors.New("the master timeout must be above zero")
	}
	cfg.withDefaults()
	cfg.Observer = calmObserver{cfg.Observer, cfg.Log}
	ctx, end := context.WithCancel(context.Background())
	l := &Locker{observer: cfg.Observer, lanes: lane.New[Outcome](cfg.Loop), end: end}
	l.cfg.Store(&cfg)
	l.masters = master.New(ctx, master.Options{
		Servers: cfg.Masters, Limits: cfg.limits(), New: cfg.New,
		Loop: cfg.Loop, Log: cfg.Log, Observer: cfg.Observer, Slept: cfg.slept,
	})
	l.box = ballot.New(l.masters, l.lanes, cfg.Observer)
	l.mender = mend.New(ctx, l.box, cfg.Log)
	l.healer = heal.New(ctx, l.box, l.mender, cfg.Observer, cfg.Log)
	l.healer.Set(cfg.Heal)
	l.tokens = token.New(l.box)
	l.runs = run.New(l.box, l.mender, func() Retry { return l.settings().Retry })
	l.listening = notify.New(ctx, cfg.Loop, l.sources(), func() time.Duration { return l.settings().MasterTimeout }, cfg.Log)
	l.masters.OnResize(func() { l.listening.Recount(l.sources()) })
	return l, nil
}

// sources are the masters for the Hub.
func (l *Locker) sources() (list []notify.Source) {
	for i, masters := 0, l.masters.List(); i < masters.Size(); i++ {
		list = append(list, masters.At(i))
	}
	return list
}

// Close waits until the masters have answered all questions and undos, or until ctx
// ends. Then it ends all connections.
func (l *Locker) Close(ctx context.Context) {
	for !l.masters.Idle() && ctx.Err() == nil {
		l.masters.Loop().Wait(5*time.Millisecond, ctx.Done())
	}
	l.end()
	l.listening.Close()
	l.healer.Wait()
	l.mender.Close()
	l.masters.Wait()
}

func (cfg *Config) withDefaults() {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Observer == nil {
		cfg.Observer = nobody{}
	}
	if cfg.RestartDelay <= 0 {
		cfg.RestartDelay = 30 * time.Second
	}
	if cfg.MaxReply <= 0 {
		cfg.MaxReply = 4 << 20
	}
	if cfg.MaxQuarantine <= 0 {
		cfg.MaxQuarantine = 10 * time.Minute
	}
}

// LeastTTL is the shortest TTL, in whole milliseconds, with which a lock can be granted.
func LeastTTL(drift float64) time.Duration { return ballot.LeastTTL(drift) }

// LeastRestartDelay is the shortest Config.RestartDelay that is safe with these settings of Config.
func LeastRestartDelay(masterTimeout time.Duration, drift float64) time.Duration {
	return roster.Limits{MasterTimeout: masterTimeout, ClockDrift: drift}.LeastRestartDelay()
}

// limits are the settings that the masters need.
func (cfg *Config) limits() master.Limits {
	return master.Limits{MaxReply: cfg.MaxReply, Limits: roster.Limits{
		MasterTimeout: cfg.MasterTimeout, ClockDrift: cfg.ClockDrift,
		RestartDelay: cfg.RestartDelay, MaxQuarantine: cfg.MaxQuarantine,
	}}
}

// settings returns the configuration as of the last reload.
func (l *Locker) settings() *Config { return l.cfg.Load() }

// Config names the masters and sets the Locker's limits.
type Config struct {
	Masters       []Master
	MasterTimeout time.Duration // the longest wait of a ballot for a master's vote; above 0
	Retry         Retry
	ClockDrift    float64 // the share of a TTL by which clocks may run apart, 0.01 in the published algorithm
	// RestartDelay is the shortest time for which a master that may have forgotten locks
	// does not vote. It is also the TTL of a lock without TTL until it is won. 0: 30 s.
	RestartDelay time.Duration
	// MaxQuarantine is the longest such time, if longer TTLs were granted. Locks that
	// live longer are not covered when a master forgets them. 0: 10 minutes.
	MaxQuarantine time.Duration
	// New says that no lock can be held on these masters yet. Then a new set may vote
	// although its masters have just started, even if another process has begun it in
	// quarantine. New has no effect on a set in which a lock may have been granted.
	New bool
	// MaxReply is the longest answer of a master in bytes: the reply, and what the request's keys held
	// before and after it. A longer one is dropped, and nobody knows what the request did. 0: 4 MB.
	MaxReply int64
	Heal     Heal         // what masters lack is written to them; the zero value: nothing is
	Log      *slog.Logger // nil: silent
	// Loop reads and writes the connections to masters. It must run until Close has returned.
	Loop     *loop.Loop
	Observer Observer // nil: none

	slept func() time.Duration // the time for which this machine was suspended; nil: asks the system
}

// Master says how to reach one of the N independent servers.
type Master = master.Server

// Heal says what is healed, and how fast (package heal).
type Heal = heal.Settings

// Retry says how often a ballot that split its votes is tried again.
type Retry = ballot.Retry

// reloadPatience is the longest wait of a reload for the masters' answers.
const reloadPatience = 5 * time.Second

// Reload makes a new configuration the active one while requests go on. It may change limits,
// retries, drift and delays, how the same masters are reached, one master for another, and
// their number. Another number is only begun: Status tells how far it has come. Log, Observer,
// Loop and New stay as they were. An error is for the operator. After an error nothing has
// changed, unless the error says that a replacement has begun.
func (l *Locker) Reload(ctx context.Context, cfg Config) error {
	l.reloads.Lock()
	defer l.reloads.Unlock()
	ctx, cancel := context.WithTimeout(ctx, reloadPatience)
	defer cancel()
	if cfg.MasterTimeout <= 0 {
		return errors.New("the master timeout must be above zero")
	}
	old := l.settings()
	cfg.Log, cfg.Observer, cfg.Loop, cfg.New = old.Log, old.Observer, old.Loop, old.New
	cfg.withDefaults()
	if err := l.masters.Reload(ctx, cfg.Masters, cfg.limits()); err != nil {
		return err
	}
	l.cfg.Store(&cfg)
	l.healer.Set(cfg.Heal)
	return nil
}
