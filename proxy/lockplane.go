package proxy

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// locker is what the lock plane asks of redlock.Locker.
type locker interface {
	Acquire(ctx context.Context, r redlock.AcquireRequest) redlock.Outcome
	Release(ctx context.Context, r redlock.ReleaseRequest) redlock.Outcome
	Get(ctx context.Context, db int, key []byte) redlock.Outcome
	Exists(ctx context.Context, db int, key []byte) redlock.Outcome
	TTL(ctx context.Context, r redlock.TTLRequest) redlock.Outcome
	Extend(ctx context.Context, r redlock.ExtendRequest) redlock.Outcome
	Swap(ctx context.Context, r redlock.SwapRequest) redlock.Outcome
	Run(ctx context.Context, r redlock.RunRequest) redlock.Outcome
	Watch(ctx context.Context, db int, keys [][]byte) (*redlock.Watch, redlock.Outcome)
}

// lockMeter is told of each lock command; metrics is the one in service.
type lockMeter interface {
	LockCommand(kind, verdict, rule string, seconds float64)
	Refused(reply string)
	LockWithoutTTL()
	LockBeyondQuarantine()
}

// lockPlane answers the commands whose keys are lock keys. There is one for
// the process; it keeps no lock and no state of a client.
type lockPlane struct {
	locker  locker
	current *config.Active
	scripts *scriptCache
	meter   lockMeter
	log     *slog.Logger
	waits   *waitingRoom // nil: blocking commands poll
	// starting is closed when the first moments of the process are over; nil: they are.
	starting <-chan struct{}

	withoutTTL atomic.Int64
	warned     sync.Map // of warning: what was warned about
	undecided  throttle
}

// lockCall is one command for the lock plane. Its slices are the caller's and
// are not kept.
type lockCall struct {
	db       int
	args     [][]byte // at least the name
	route    route.Route
	version  wire.Version
	lastRead *lastRead // the session's; nil: it remembers nothing
}

// commandName is for logs: empty for a command that is in no table.
func (c lockCall) commandName() string {
	if c.route.Spec == nil {
		return ""
	}
	return c.route.Spec.Name
}

// newLockPlane wants everything given; log gets command names and verdicts at
// debug level, never a key or a value.
func newLockPlane(locker locker, current *config.Active, scripts *scriptCache, meter lockMeter, log *slog.Logger) *lockPlane {
	return &lockPlane{locker: locker, current: current, scripts: scripts, meter: meter, log: log}
}

// do runs one lock-plane command to its verdict and appends its one reply to
// dst. ctx ends when the client has gone; do returns soon after that, but only
// when nothing it started still looks at call.
func (p *lockPlane) do(ctx context.Context, dst []byte, call lockCall) []byte {
	started := time.Now()
	p.awaitStart(ctx)
	a := p.unlessMoved(p.decide(ctx, call, time.Now()), call)
	took := time.Since(started)
	p.meter.LockCommand(a.kind.String(), a.verdict(), p.ruleOf(call), took.Seconds())
	p.tellUndecided(ctx, call.commandName(), call.db, a.outcome, took)
	if p.log.Enabled(ctx, slog.LevelDebug) {
		// The arguments of a script may hold a value where a key could stand, so
		// only the command's name is told.
		p.log.DebugContext(ctx, "lock command",
			"command", call.commandName(), "db", call.db, "kind", a.kind.String(), "verdict", a.verdict(), "took", took)
	}
	return a.append(dst, call.version)
}

// ruleOf names the rule of the first lock key, for metrics.
func (p *lockPlane) ruleOf(calls ...lockCall) string {
	for _, call := range calls {
		for i, at := range call.route.Keys {
			if call.route.Lock[i] && at < len(call.args) {
				return p.lockRules().Find(call.db, call.args[at]).Label()
			}
		}
	}
	return ""
}

// tellUndecided logs that nobody could know who holds a lock, once a second at
// most. A client that has gone is none of it.
func (p *lockPlane) tellUndecided(ctx context.Context, command string, db int, o redlock.Outcome, took time.Duration) {
	if o.Verdict != redlock.NoQuorum || ctx.Err() != nil {
		return
	}
	if count, due := p.undecided.due(time.Now()); due {
		p.log.Warn("lock commands could not be decided", "error", o.NoQuorumError(),
			"command", command, "db", db, "took", took, "undecided_since_last_line", count)
	}
}

// decide finds what kind of question a command is and puts it to the masters.
// Absolute times are counted from now.
func (p *lockPlane) decide(ctx context.Context, call lockCall, now time.Time) answer {
	if a, refused := refuse(call); refused {
		return a
	}
	switch name := call.route.Spec.Name; name {
	case "set":
		c, reply := parseSet(call.args, now)
		return p.set(ctx, call, c, reply)
	case "setnx":
		return p.acquire(ctx, call, setCommand{onlyAbsent: true}, readsOne)
	case "getset":
		return p.swap(ctx, call, setCommand{get: true})
	case "setex", "psetex":
		c, reply := parseSetEX(name, call.args, now)
		return p.set(ctx, call, c, reply)
	case "getex":
		c := parseGetEX(call.args, now)
		if c.over {
			return p.take(ctx, call)
		}
		return p.run(ctx, call, c.relative(call.args))
	case "expire", "pexpire", "expireat", "pexpireat":
		c, reply := parseExpire(name, call.args, now)
		return p.expire(ctx, call, c, reply)
	case "persist":
		o := p.locker.Extend(ctx, redlock.ExtendRequest{DB: call.db, Key: call.args[1], Persist: true})
		return answer{kind: redlock.KindExtend, outcome: o, reads: readsOne}
	case "ttl":
		return p.remaining(ctx, call, "TTL")
	case "pttl":
		return p.remaining(ctx, call, "PTTL")
	case "expiretime":
		return p.remaining(ctx, call, "EXPIRETIME")
	case "pexpiretime":
		return p.remaining(ctx, call, "PEXPIRETIME")
	case "get":
		o := p.locker.Get(ctx, call.db, call.args[1])
		if o.Verdict != redlock.NoQuorum {
			call.lastRead.remember(call.db, call.args[1], o.Value)
		}
		return answer{kind: redlock.KindRead, outcome: o, reads: readsValue}
	case "mget":
		return p.getKeys(ctx, call)
	case "exists", "touch":
		return p.countKeys(ctx, call)
	case "del", "unlink":
		return p.releaseKeys(ctx, call)
	case "getdel":
		return p.take(ctx, call)
	case "delex":
		if len(call.args) == 2 {
			return p.releaseKeys(ctx, call) // without a condition it is DEL
		}
		return p.run(ctx, call, call.args)
	case "eval", "eval_ro":
		return p.eval(ctx, call, false)
	case "evalsha", "evalsha_ro":
		return p.eval(ctx, call, true)
	case "xread", "xreadgroup":
		if waitsForEntries(call.args) {
			return rejection(redlock.KindRun, errorNotOnLockKeys(name+" with block"))
		}
		return p.run(ctx, call, call.args)
	default:
		if call.route.Spec.Is(command.NeverOnLocks) {
			return rejection(redlock.KindRun, errorNotOnLockKeys(name))
		}
		return p.run(ctx, call, call.args)
	}
}

// refuse answers what needs no master: commands that Redis refuses before it
// runs them, and the key that no client may touch.
func refuse(call lockCall) (a answer, refused bool) {
	spec := call.route.Spec
	switch {
	case spec == nil && len(call.args) > 1 && command.Builtin().Lookup(call.args[:1]) != nil:
		return rejection(redlock.KindRun, errorUnknownSubcommand(call.args)), true
	case spec == nil:
		return rejection(redlock.KindRun, wire.ErrUnknownCommand(call.args)), true
	case !spec.ArityOK(len(call.args)):
		return rejection(redlock.KindRun, wire.ErrArity(spec.Name)), true
	case call.route.Reserved:
		return rejection(redlock.KindRun, errorReservedKey), true
	case call.route.Elsewhere:
		return rejection(redlock.KindRun, errorElsewhere), true
	}
	return answer{}, false
}
