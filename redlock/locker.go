package redlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/notify"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// Locker asks N masters for locks. It keeps no lock itself: any number of
// Lockers may stand side by side over the same masters.
type Locker struct {
	cfg       atomic.Pointer[Config] // immutable; Masters are those of the start
	log       *slog.Logger
	observer  Observer
	masters   []*master
	voters    *voters
	slumber   *slumber
	prepared  [64]atomic.Bool // databases in which a quorum has voted
	running   sync.WaitGroup
	turns     *turns
	order     *order
	creations *creations
	mendings  *mendings
	owed      *owedAnswers
	waits     sync.Pool // of *wait; ballots mostly end long before their timers do
	scripts   knownScripts
	listening *notify.Hub
	ctx       context.Context // ends everything
	end       context.CancelFunc
	reloads   sync.Mutex // one reload at a time
}

// New starts connecting to the masters and returns at once. Close ends it.
func New(cfg Config) (*Locker, error) {
	if len(cfg.Masters) == 0 {
		return nil, errors.New("no lock masters are given")
	}
	if len(cfg.Masters) > mostMasters {
		return nil, fmt.Errorf("%d lock masters are given, and there can be %d; five are usual", len(cfg.Masters), mostMasters)
	}
	if cfg.MasterTimeout <= 0 {
		return nil, errors.New("the master timeout must be above zero")
	}
	cfg.withDefaults()
	ctx, end := context.WithCancel(context.Background())
	l := &Locker{log: cfg.Log, observer: cfg.Observer, turns: newTurns(), order: newOrder(), creations: newCreations(), mendings: newMendings(), owed: newOwedAnswers(), ctx: ctx, end: end}
	l.slumber = newSlumber(cfg.slept)
	l.waits.New = newWait
	l.cfg.Store(&cfg)
	var servers []roster.Server
	for _, m := range cfg.Masters {
		servers = append(servers, m.forRoster())
	}
	l.voters = newVoters(roster.New(servers, cfg.New, rand.Uint64()), cfg.Observer.Standing, cfg.Log)
	for i, m := range cfg.Masters {
		master := &master{
			number: i, settings: l.settings, voters: l.voters, slumber: l.slumber,
			log: cfg.Log, observer: cfg.Observer,
		}
		master.begin(ctx, m)
		l.masters = append(l.masters, master)
	}
	for _, m := range l.masters {
		m.stream(0)
	}
	sources := make([]notify.Source, len(l.masters))
	for i, m := range l.masters {
		sources[i] = m
	}
	l.listening = notify.New(ctx, sources, func() time.Duration { return l.settings().MasterTimeout }, cfg.Log)
	l.running.Go(func() {
		for ctx.Err() == nil {
			stream.Contained(l.log, func() { l.certify(ctx) })
			stream.Sleep(ctx, roster.BeatLength)
		}
	})
	return l, nil
}

// Close waits until the masters have answered what was asked, undos included,
// for as long as ctx allows, and ends all connections.
func (l *Locker) Close(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !l.idle() && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	l.mendings.close()
	l.end()
	l.listening.Close()
	l.running.Wait()
	for _, m := range l.masters {
		m.running.Wait()
	}
}

func (cfg *Config) withDefaults() {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.slept == nil {
		cfg.slept = suspendedFor
	}
	if cfg.Observer == nil {
		cfg.Observer = nobody{}
	}
	cfg.Observer = calmObserver{cfg.Observer, cfg.Log}
	if cfg.RestartDelay <= 0 {
		cfg.RestartDelay = 30 * time.Second
	}
	if cfg.MaxReply <= 0 {
		cfg.MaxReply = 256 << 20
	}
	if cfg.MaxQuarantine <= 0 {
		cfg.MaxQuarantine = 10 * time.Minute
	}
}

// forRoster is what the roster has to know of it.
func (m *Master) forRoster() roster.Server { return roster.Server{Name: m.Name, Moves: m.Moves} }

// forRoster is what of it decides who may vote.
func (cfg *Config) forRoster() roster.Limits {
	return roster.Limits{
		MasterTimeout: cfg.MasterTimeout, ClockDrift: cfg.ClockDrift,
		RestartDelay: cfg.RestartDelay, MaxQuarantine: cfg.MaxQuarantine,
	}
}

// certifiedIn are the masters certified in a database.
func (l *Locker) certifiedIn(db int) masterSet {
	return masterSet(ask(l.voters, func(r *roster.Roster) uint64 { return r.CertifiedIn(db) }))
}

// all are the masters.
func (l *Locker) all() masterSet { return 1<<len(l.masters) - 1 }

// settings are the configuration as it is now.
func (l *Locker) settings() *Config { return l.cfg.Load() }

func (l *Locker) idle() bool {
	for _, m := range l.masters {
		if !m.idle() {
			return false
		}
	}
	return true
}

// Config says which masters there are and how patient to be with them.
type Config struct {
	Masters       []Master
	MasterTimeout time.Duration // how long a ballot waits for a master's vote
	Retry         Retry
	ClockDrift    float64 // the share of a TTL by which clocks may run apart, 0.01 in the published algorithm
	// RestartDelay is how long a master that may have forgotten locks does not
	// vote, and the TTL of a lock without TTL until it is won.
	RestartDelay time.Duration
	// MaxQuarantine caps a quarantine where longer TTLs were granted. Locks that
	// live longer are not covered when a master forgets them.
	MaxQuarantine time.Duration
	// New says that no lock can be held on these masters yet, so that a new set
	// of them may vote although they have just started, also one that another
	// process has begun in quarantine. It has no effect on a set in which a lock
	// may have been granted.
	New bool
	// MaxReply is how many bytes of a master's answers one stream may hold at a
	// time; 0: 256 MB. A master that sends more is broken, and dialled anew.
	MaxReply int64
	Log      *slog.Logger // nil: silent
	Observer Observer     // nil: nobody watches

	slept func() time.Duration // for how long this machine was suspended; nil: it is asked
}

// Retry bounds how a ballot that split its votes is repeated.
type Retry struct {
	Count int           // repetitions after the first try
	Delay time.Duration // each waits a random time up to this
}

// Master is how one of the N independent servers is reached. Name is what
// logs, metrics and errors call it and holds no credentials.
type Master struct {
	Name     string
	Dial     func(ctx context.Context) (net.Conn, error)
	Username string
	Password string
	// Embedded marks a server inside this process, which has no CLIENT KILL
	// and whose connections cannot outlive it.
	Embedded bool
	// Moves marks a master that may be another server one day: Dial leads to the
	// one that a Sentinel names. A promoted replica carries the marker of the
	// server before it, and may lack what that one granted last.
	Moves bool
}

func (m *Master) address() stream.Server {
	return stream.Server{Dial: m.Dial, Username: m.Username, Password: m.Password, Embedded: m.Embedded}
}

// Observer is told what happens on the lock plane. Its methods are called
// from many goroutines at once and must not block.
type Observer interface {
	// Voted: master answered a ballot after the given time, or failed to.
	Voted(master string, vote Vote, after time.Duration)
	// Decided: a ballot of that kind came to its verdict.
	Decided(kind Kind, verdict Verdict, after time.Duration)
	// Undone: a grant that counted, of a request that was not won, was queued to be
	// taken back.
	Undone(master string)
	// Queued: how many undos and releases wait for a master that is away.
	Queued(master string, waiting int)
	// Standing: the master's state has changed.
	Standing(s roster.MasterStatus)
	// Forgot: this process put on record that the master's quarantine begins. Of
	// several processes over the same masters only one is told.
	Forgot(master string, cause roster.Amnesia)
}

type nobody struct{}

func (nobody) Voted(string, Vote, time.Duration)    {}
func (nobody) Decided(Kind, Verdict, time.Duration) {}
func (nobody) Undone(string)                        {}
func (nobody) Queued(string, int)                   {}
func (nobody) Standing(roster.MasterStatus)         {}
func (nobody) Forgot(string, roster.Amnesia)        {}

// Vote is one master's answer.
type Vote uint8

const (
	Failed     Vote = iota // no answer in time, or one that says the server cannot serve
	Granted                // it did or confirmed what was asked
	Refused                // it answered that it did not
	Discounted             // it answered, and may not vote: it is in quarantine, say
)

func (v Vote) String() string { return [...]string{"failed", "granted", "refused", "discounted"}[v] }

// Verdict is what a ballot came to.
type Verdict = quorum.Verdict

const (
	Pending  = quorum.Pending
	Won      = quorum.Won
	Lost     = quorum.Lost
	NoQuorum = quorum.NoQuorum
)

// Kind is the question a ballot asks.
type Kind uint8

const (
	KindAcquire Kind = iota
	KindExtend
	KindRelease
	KindRead
	KindSwap
	KindRun
)

func (k Kind) String() string {
	return [...]string{"acquire", "extend", "release", "read", "swap", "run"}[k]
}

// Outcome is a request's end. Exactly one reading applies: Err set (the
// masters agreed on an error, which is the client's answer), Verdict NoQuorum
// (Voting of Asked masters can vote now, Needed had to), or the fields that the
// request's method documents.
type Outcome struct {
	Verdict Verdict
	Value   []byte // nil: absent
	Number  int64
	Reply   []byte // Run: one RESP value, byte for byte a master's own
	// Lives is, of a Run that was won, the longest TTL that a key has which it
	// wrote, as far as that is known; 0: none expires.
	Lives    time.Duration
	Err      string // without the leading "-"
	Answered int    // the masters whose answers count
	Asked    int
	Needed   int
	// Voting of the masters asked can vote now: they are certified and answer. It
	// is not counted for what was won.
	Voting int
	// Quarantined of the masters asked may not vote now, the first of them again
	// at Until.
	Quarantined int
	Until       time.Time
	// NewUntil is when locks can be granted in a new set; zero: it is none.
	NewUntil time.Time
}

// NoQuorumError words a NoQuorum outcome for the client, without the leading
// "-". Its first word is one that no client library knows: phpredis answers
// false to NOQUORUM, as to a lock that somebody holds, and others retry by
// themselves what they know.
func (o Outcome) NoQuorumError() string {
	text := "QUORUMLOST " + o.undecided()
	if !o.NewUntil.IsZero() {
		return text + "; " + roster.NewSetNotice(o.NewUntil)
	}
	switch o.Quarantined {
	case 0:
		return text
	case 1:
		return text + "; 1 is in quarantine, until " + o.Until.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s; %d are in quarantine, the first until %s", text, o.Quarantined, o.Until.UTC().Format(time.RFC3339))
}

// undecided says why there is no verdict.
func (o Outcome) undecided() string {
	switch {
	case o.Voting < o.Needed:
		return fmt.Sprintf("%d of %d lock masters can vote, %d needed", o.Voting, o.Asked, o.Needed)
	case o.Answered < o.Needed:
		return fmt.Sprintf("only %d of %d lock masters answered in time, %d needed", o.Answered, o.Asked, o.Needed)
	}
	return fmt.Sprintf("the answers of %d lock masters differ, %d alike needed", o.Answered, o.Needed)
}

// Subscriber makes a party that is told what happens on the masters. hear is
// called with one event at a time for this subscriber, from goroutines of the
// Locker, and must not block. Close ends it; it must not be called in hear, and
// after it has returned hear is not called any more.
func (l *Locker) Subscriber(hear func(notify.Event)) *notify.Subscriber {
	return l.listening.Subscriber(hear)
}

// TrackingAvailable tells whether a quorum of the masters can tell of changed
// keys. Where they cannot (embedded ones, servers older than Redis 6), Track
// and TrackPrefix hear nothing.
func (l *Locker) TrackingAvailable() bool { return l.listening.CanTrack() }
