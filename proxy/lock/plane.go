package lock

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
)

// Locker asks the masters and decides by their votes. redlock.Locker is the one in
// service.
type Locker interface {
	Acquire(ctx context.Context, r redlock.AcquireRequest) redlock.Outcome
	Release(ctx context.Context, r redlock.ReleaseRequest) redlock.Outcome
	Get(ctx context.Context, db int, key []byte) redlock.Outcome
	Exists(ctx context.Context, db int, key []byte) redlock.Outcome
	TTL(ctx context.Context, r redlock.TTLRequest) redlock.Outcome
	Extend(ctx context.Context, r redlock.ExtendRequest) redlock.Outcome
	Run(ctx context.Context, r redlock.RunRequest) redlock.Outcome
	Token(ctx context.Context, r redlock.TokenRequest) redlock.Outcome
	Watch(ctx context.Context, db int, keys [][]byte) (*redlock.Watch, redlock.Outcome)
}

// Meter counts lock commands. events.Metrics is the one in service.
type Meter interface {
	LockCommand(kind, verdict, rule string, seconds float64)
	Refused(code string)
	LimitReached(limit string)
	LockWithoutTTL()
	LockBeyondQuarantine()
	LockWaited(rule string, after time.Duration)
	LockHeld(rule string, after time.Duration)
	Waits(rule string) (ended func(outcome string, after time.Duration))
}

// Plane answers the commands whose keys are lock keys. A process has one Plane. It
// keeps neither locks nor the state of a client. Any number of goroutines may use
// it.
type Plane struct {
	Config
	lines *lines

	withoutTTL atomic.Int64
	warned     sync.Map // the warnings that were logged, see warnOnce
	undecided  events.Throttle
}

// Command is a command on lock keys. The plane does not keep its slices.
type Command struct {
	DB      int
	Args    [][]byte       // at least the name
	Route   route.Route    // the places of its keys
	Version wire.Version   // of the protocol that the client speaks
	Client  slog.LogValuer // the sender, for the log; may be nil
	From    *events.Client // the sender, for the journal; may be nil
	Leases  *lease.Holder  // of the client; nil: the locks that it takes get no leases
}

// Name is the name in the command's specification, or empty if it has none.
func (c Command) Name() string {
	if c.Route.Spec == nil {
		return ""
	}
	return c.Route.Spec.Name
}

// Config is the parts of a Plane.
type Config struct {
	Locker        Locker
	Router        func() *route.Router // returns the current one
	MaxQuarantine func() time.Duration // returns the current one
	MaxReply      func() int64         // returns the current limit of MGET's values together
	Scripts       *Scripts
	Meter         Meter
	Log           *slog.Logger // at debug level: each command with its first lock key, never a value
	// Starting is closed once enough masters vote, or waiting for them makes no sense.
	// Commands wait until then. If it is nil, no command waits.
	Starting <-chan struct{}
	// Draining is closed when no acquire may wait for its lock any longer; nil: never.
	Draining <-chan struct{}
	Changes  Changes
	Leases   *lease.Keeper                 // nil: there are no leases
	Journal  *events.Journal               // remembers how commands end, and for how long locks are held; may be nil
	IsSlow   func(took time.Duration) bool // tells whether a command that took so long is slow
}

// New makes a plane. Everything but Starting, Draining, Changes, Leases and Journal must be
// given, and IsSlow with a Journal.
func New(c Config) *Plane {
	return &Plane{Config: c, lines: newLines(c.Changes)}
}

// Parks tells whether Do may run on the loop of the task in its context. An acquire and a script
// are nearly always over with one ballot, which parks the task. Else the task leaves the loop.
func (p *Plane) Parks(call Command) bool {
	switch call.Name() {
	case "set", "setnx", "eval", "evalsha":
		return true
	}
	return false
}

// Overlaps tells whether Do may run beside other commands of the same client on other keys: Parks is
// true, and the command neither reads nor changes anything but one key. Such are an acquire and a
// release by a script that certainly is one. An acquire that may wait for
// its lock holds up what comes behind it: the client would learn too late of a lock that it got.
func (p *Plane) Overlaps(call Command) bool {
	args := call.Args
	if len(call.Route.Keys) != 1 {
		return false
	}
	switch call.Name() {
	case "setnx":
		return len(args) == 3 && !call.mayWait()
	case "set":
		nx := false
		for _, word := range args[min(3, len(args)):] {
			if wire.IsWord(word, "GET") {
				return false
			}
			nx = nx || wire.IsWord(word, "NX")
		}
		return nx && !call.mayWait()
	case "eval":
		return p.Scripts.ReleasesText(args[1])
	case "evalsha":
		return p.Scripts.Releases(args[1])
	}
	return false
}

// mayWait tells whether the rule of the command's key has a wait.
func (c Command) mayWait() bool { return c.Route.Rule != nil && c.Route.Rule.Wait > 0 }

// Do runs one command to its verdict and appends its one reply to dst. ctx ends when
// the client has gone. Do returns soon after that, but not before everything that it
// started has stopped reading call.
func (p *Plane) Do(ctx context.Context, dst []byte, call Command) []byte {
	r, calls := record{name: call.Name(), db: call.DB, leases: call.Leases}, []Command{call}
	r.begin(calls)
	p.awaitStart(ctx)
	r.answer = p.decide(ctx, call, time.Now())
	return p.end(ctx, &r, calls).append(dst, call.Version)
}

// awaitStart returns when Config.Starting is closed or the client has gone.
func (p *Plane) awaitStart(ctx context.Context) {
	if p.Starting == nil {
		return
	}
	select {
	case <-p.Starting:
		return
	default:
	}
	loop.FromContext(ctx).Leave()
	select {
	case <-p.Starting:
	case <-ctx.Done():
	}
}

// Peek reads a key for the proxy's own use, and returns the reply that a RESP2 client would get.
func (p *Plane) Peek(ctx context.Context, db int, key string) []byte {
	args := [][]byte{[]byte("GET"), []byte(key)}
	return p.Do(ctx, nil, Command{DB: db, Args: args, Route: p.Router().Route(db, args)})
}

// decide asks the masters what the command's name calls for. It makes absolute times
// relative to now.
func (p *Plane) decide(ctx context.Context, call Command, now time.Time) answer {
	if refusal := refuse(call); refusal != "" {
		return rejection(redlock.KindRun, refusal)
	}
	o, refusal := call.options(now)
	switch name := call.Route.Spec.Name; name {
	case "set", "setex", "psetex":
		return p.set(ctx, call, o, refusal)
	case "setnx":
		return p.acquire(ctx, call, o, readsOne)
	case "getset":
		return p.swap(ctx, call, o)
	case "getex":
		if o.ends() { // else votes of a client that is just acquiring would end
			return p.release(ctx, call, readsValue)
		}
		return p.run(ctx, call, o)
	case "expire", "pexpire", "expireat", "pexpireat":
		return p.expire(ctx, call, o, refusal)
	case "persist":
		o := p.Locker.Extend(ctx, redlock.ExtendRequest{DB: call.DB, Key: call.Args[1], Persist: true})
		return answer{kind: redlock.KindExtend, outcome: o, reads: readsOne, keepsTTL: true}
	case "ttl", "pttl", "expiretime", "pexpiretime":
		o := p.Locker.TTL(ctx, redlock.TTLRequest{DB: call.DB, Key: call.Args[1], Name: strings.ToUpper(name)})
		return answer{kind: redlock.KindRead, outcome: o, reads: readsNumber}
	case "redlock|token":
		o := p.Locker.Token(ctx, redlock.TokenRequest{DB: call.DB, Key: call.Args[2], Value: call.Args[3]})
		if o.Verdict == redlock.Lost {
			return answer{kind: redlock.KindToken, outcome: o, reads: readsValue} // nil
		}
		return answer{kind: redlock.KindToken, outcome: o, reads: readsNumber}
	case "get":
		return answer{kind: redlock.KindRead, outcome: p.Locker.Get(ctx, call.DB, call.Args[1]), reads: readsValue}
	case "mget":
		return p.getKeys(ctx, call)
	case "exists", "touch":
		return p.countKeys(ctx, call)
	case "del", "unlink":
		return p.releaseKeys(ctx, call)
	case "getdel":
		return p.release(ctx, call, readsValue)
	case "delex":
		if len(call.Args) == 2 {
			return p.releaseKeys(ctx, call) // DELEX without a condition is DEL
		}
		return p.run(ctx, call, o)
	case "eval", "eval_ro":
		return p.eval(ctx, call, false)
	case "evalsha", "evalsha_ro":
		return p.eval(ctx, call, true)
	case "hscan", "sscan", "zscan":
		return p.scanElements(ctx, call, name)
	case "xread", "xreadgroup":
		if readBlocks(call.Args) {
			return rejection(redlock.KindRun, wire.ErrNotOnLockKeys(name+" with block"))
		}
		return p.examine(ctx, p.runRequest(call), call.Leases)
	default:
		if call.Route.Spec.Is(route.NeverOnLocks) {
			return rejection(redlock.KindRun, wire.ErrNotOnLockKeys(name))
		}
		return p.run(ctx, call, o)
	}
}

// refuse returns the error reply for a command that may not go to the masters, or "".
// Redis would refuse it before running it, or no client may use the key like this.
func refuse(call Command) wire.Error {
	refusal := call.Route.Spec.Check(call.Args)
	switch {
	case refusal != "":
		return refusal
	case call.Route.Reserved:
		return wire.ErrReservedKey
	case call.Route.Elsewhere:
		return wire.ErrElsewhere
	}
	return ""
}
