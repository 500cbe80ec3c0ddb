package master

import (
	"context"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/stream"
)

// Server says how to reach one of the N independent servers. Logs, metrics and errors use
// Name, which holds no credentials.
type Server struct {
	Name     string
	Dial     func(ctx context.Context) (net.Conn, error)
	Username string
	Password string
	// Embedded marks a server inside this process. It has no CLIENT KILL, and its
	// connections cannot outlive it.
	Embedded bool
	// Moves marks a master that may become another server: Dial leads to the server that
	// a Sentinel names. A promoted replica has the marker of the server before it, and
	// may lack the last locks that the old server granted.
	Moves bool
}

func (s *Server) address() stream.Server {
	return stream.Server{Dial: s.Dial, Username: s.Username, Password: s.Password, Embedded: s.Embedded}
}

// forRoster returns what the roster needs to know of the server.
func (s *Server) forRoster() roster.Server { return roster.Server{Name: s.Name, Moves: s.Moves} }

// Limits say how patient to be with masters. They may change at run time.
type Limits struct {
	roster.Limits
	MaxReply int64 // the longest reply in bytes; a longer one is dropped
}

// An Observer is told what happens to masters. Its methods must not block. Many
// goroutines may call them at once.
type Observer interface {
	// Queued is called with the number of undos and releases that wait for a master, within
	// a moment after it has changed.
	Queued(master string, waiting int)
	// Standing is called when the state of a master has changed.
	Standing(s roster.MasterStatus)
	// Forgot is called when this process has recorded the beginning of a master's
	// quarantine. If several processes share the masters, only one of them is told.
	Forgot(master string, cause roster.Amnesia)
}

// Set is the N independent servers, and the roster of those that may vote. All goroutines
// may use it.
type Set struct {
	*shared
	list     atomic.Pointer[List]                        // written with the roster held
	prepared [marker.Databases]atomic.Pointer[time.Time] // see preparedFor
	running  sync.WaitGroup
	resized  atomic.Pointer[func()] // see OnResize

	changing sync.Mutex // one Reload or tend at a time
	told     *List      // the list that OnResize's f was called for; guarded by changing
}

// shared is what all masters have in common.
type shared struct {
	ctx      context.Context // ends all streams
	limits   atomic.Pointer[Limits]
	voters   *voters
	slumber  *slumber
	loop     *loop.Loop
	log      *slog.Logger
	observer Observer
}

// Options configure a Set. Reload may change Limits and Servers later, and nothing else.
type Options struct {
	Servers  []Server
	Limits   Limits
	New      bool       // the masters are new, so they hold no locks
	Loop     *loop.Loop // reads and writes the connections
	Log      *slog.Logger
	Observer Observer
	Slept    func() time.Duration // total time that this machine was suspended; nil: ask the kernel
}

// New makes a Set, starts connecting to the masters, and returns at once. All goroutines
// end when ctx ends.
func New(ctx context.Context, o Options) *Set {
	if o.Slept == nil {
		o.Slept = suspendedFor
	}
	var servers []roster.Server
	for _, server := range o.Servers {
		servers = append(servers, server.forRoster())
	}
	r := roster.New(servers, o.New, uint64(o.Loop.Draw(math.MaxInt64)))
	all := &shared{
		ctx: ctx, voters: newVoters(r, o.Observer.Standing, o.Log), slumber: newSlumber(o.Slept),
		loop: o.Loop, log: o.Log, observer: o.Observer,
	}
	all.limits.Store(&o.Limits)
	s, list := &Set{shared: all}, &List{size: len(o.Servers), listed: len(o.Servers)}
	for i, server := range o.Servers {
		m := &Master{shared: all, number: i}
		m.begin(server)
		list.masters = append(list.masters, m)
	}
	s.list.Store(list)
	s.told = list
	all.voters.recount = s.recounted
	for _, m := range list.masters {
		m.database(0)
	}
	s.loop.Spawn(&s.running, func() {
		for ctx.Err() == nil {
			stream.Contained(o.Log, func() { s.certify(ctx) })
			s.loop.Wait(roster.BeatLength, ctx.Done())
		}
	})
	return s
}

// Wait returns when all goroutines have ended. They end after the context.
func (s *Set) Wait() {
	s.loop.Join(&s.running)
	for _, m := range s.List().masters {
		s.loop.Join(&m.running)
	}
}

// Loop is the loop that reads and writes the connections.
func (s *Set) Loop() *loop.Loop { return s.loop }

// List returns the present masters.
func (s *Set) List() *List { return s.list.Load() }

// At returns the master with an index in the present list.
func (s *Set) At(i int) *Master { return s.List().At(i) }

// Limits returns the present limits.
func (s *Set) Limits() Limits { return *s.limits.Load() }

// Idle tells whether no connected master owes an answer and all askers have returned.
func (s *Set) Idle() bool {
	for _, m := range s.List().masters {
		if !m.idle() {
			return false
		}
	}
	return true
}

// Status returns the state of all masters.
func (s *Set) Status() roster.Status {
	now := time.Now()
	status := ask(s.voters, func(r *roster.Roster) roster.Status { return r.Status(now) })
	list := s.List()
	show := func(shown *roster.MasterStatus, m *Master) {
		switch {
		case m.database(0).Silent(now):
			shown.State, shown.Reason = roster.Unreachable, roster.Silent
		case m.hasLeft() && m.number < len(status.Masters):
			shown.State, shown.Reason = roster.Unreachable, errUnlisted.Error()
		case m.hasLeft():
			shown.State, shown.Reason = roster.Unreachable, isOffRecord
		}
		if shown.State == roster.Unreachable {
			shown.Until = time.Time{} // a silent master may have been in quarantine
		} else {
			shown.ClockAhead, shown.ClockWithin = m.clock.ahead(moment{now, s.slumber.last()})
		}
	}
	for i := range status.Masters {
		show(&status.Masters[i], list.At(i))
	}
	var others []roster.MasterStatus
	for i, shown := range status.Others {
		if i += len(status.Masters); i < list.listed || i < len(list.masters) && !list.At(i).hasLeft() {
			show(&shown, list.At(i))
			others = append(others, shown)
		}
	}
	status.Others = others
	return status
}

// Covered returns the TTL that markers record for a lock's TTL. It rounds up, so that
// varying TTLs cause few writes of markers. It never exceeds what a quarantine can cover.
func (s *Set) Covered(ttl time.Duration) time.Duration {
	step := max(time.Second, ttl/8)
	return min((ttl+step-1)/step*step, s.limits.Load().MaxQuarantine)
}

// Voting returns the masters that can vote now: they have the state Voting and answer.
func (s *Set) Voting(db int) quorum.Set {
	now := time.Now()
	voting := s.expect(db, now).Voting
	for i, m := range s.List().masters {
		if voting.Has(i) && m.database(db).Silent(now) {
			voting &^= 1 << i
		}
	}
	return voting
}

// Fillable returns the masters that can be given copies of locks: they vote, or they are in
// quarantine.
func (s *Set) Fillable(db int) quorum.Set {
	p := s.expect(db, time.Now())
	return p.Voting | p.Quarantined
}

// Turned returns a channel that is closed when the state of a master next changes.
func (s *Set) Turned() <-chan struct{} { return s.voters.watch(func(*roster.Roster) {}) }

// Quarantined returns the number of quarantined masters and when the first of them may
// vote again. newUntil is when locks can be granted if the masters form a new set.
func (s *Set) Quarantined(db int, now time.Time) (n int, until, newUntil time.Time) {
	p := s.expect(db, now)
	return p.Quarantined.Len(), p.Until, p.NewUntil
}

// Prospects returns the number of masters that can vote in a database now, and the number
// that will be able to by the given time, as far as is known.
func (s *Set) Prospects(db int, by time.Time) (now, then int) {
	p, served := s.expect(db, by), s.List().Serving(db)
	return (p.Voting & served).Len(), (p.Hopeful & served).Len()
}

func (s *Set) expect(db int, by time.Time) roster.Prospects {
	return ask(s.voters, func(r *roster.Roster) roster.Prospects { return r.Prospects(db, by, time.Now()) })
}

// Hopeless tells whether fewer than a quorum of masters can vote and waiting will not
// help: the states of the others are known, and none of them will vote within a ballot's
// time.
func (s *Set) Hopeless(db int) bool {
	p := s.expect(db, time.Now().Add(s.limits.Load().MasterTimeout))
	list := s.List()
	served := list.Serving(db)
	return p.Arriving&served == 0 && (p.Hopeful&served).Len() < list.Needed()
}

// IsPrepared tells whether Prepare would return at once.
func (s *Set) IsPrepared(db int) bool { return s.preparedFor(db).Load() == s.voters.learned.Load() }

// preparedFor is the value of learned for which a quorum has voted in a database. No lock is in one beyond the last.
func (s *Set) preparedFor(db int) *atomic.Pointer[time.Time] {
	return &s.prepared[min(db, len(s.prepared)-1)]
}

// settling is how much longer Prepare waits for a quorum of votes after a change of the masters. Some changes follow each
// other at once.
const settling = 2 * time.Second

// Prepare waits until a quorum of masters votes in a database that is used for the first time, or for the first time after
// a change of the masters. No vote counts for a moment after that. It waits for no longer than a ballot may take and,
// after a change, settling. It does not wait if no change of a state is expected, or when left is closed (nil: the asker
// does not leave).
func (s *Set) Prepare(db int, left <-chan struct{}) {
	if s.IsPrepared(db) {
		return
	}
	for _, m := range s.List().masters {
		m.database(db)
	}
	timeout := s.limits.Load().MasterTimeout
	until := time.Now().Add(timeout)
	if s.preparedFor(db).Load() != nil {
		until = until.Add(settling)
	}
	for !s.Hopeless(db) {
		now, learned := time.Now(), s.voters.learned.Load()
		var p roster.Prospects
		turned := s.voters.watch(func(r *roster.Roster) { p = r.Prospects(db, now, now) })
		wait := learned.Add(timeout).Sub(now)
		if wait <= 0 {
			if p.Voting.Len() >= s.List().Needed() {
				s.preparedFor(db).Store(learned)
				return
			}
			wait = time.Until(p.Moved.Add(timeout))
		}
		if wait = min(wait, time.Until(until)); wait <= 0 || s.loop.Wait(wait, left, s.ctx.Done(), turned) == 0 || s.ctx.Err() != nil {
			return
		}
	}
}

// HasLearned tells whether this process has learned of a change of the masters since then.
func (s *Set) HasLearned(since time.Time) bool {
	return s.voters.learned.Load().After(since)
}
