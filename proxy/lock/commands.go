package lock

import (
	"context"
	"strconv"
	"time"

	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
)

// set carries out SET, SETEX and PSETEX. refusal is the parser's error, or empty.
func (p *Plane) set(ctx context.Context, call Command, o options, refusal wire.Error) answer {
	// Without agreement each try would delete the lock of whoever took it meanwhile.
	over := o.over || refusal == "" && o.ends() && !o.onlyAbsent
	if o.onlyAbsent && !o.conditional {
		switch {
		case refusal != "":
			return rejection(redlock.KindAcquire, refusal)
		case over:
			loop.FromContext(ctx).Leave()
			return p.acquireInThePast(ctx, call, o)
		}
		return p.acquire(ctx, call, o, readsStatus)
	}
	loop.FromContext(ctx).Leave() // the others have several ballots
	switch {
	case o.get && !o.conditional:
		switch {
		case refusal != "":
			return rejection(redlock.KindSwap, refusal)
		case over:
			return p.release(ctx, call, readsValue)
		}
		return p.swap(ctx, call, o)
	case refusal != "":
		return rejection(redlock.KindRun, refusal)
	case over && !o.conditional:
		// Redis writes the key and deletes it at once, which releases the lock. The
		// masters never see the command, because it would erase the votes of a
		// client that is just acquiring.
		if o.onlyPresent {
			return p.release(ctx, call, readsStatus)
		}
		return p.release(ctx, call, readsOK)
	}
	return p.run(ctx, call, o)
}

// acquire carries out SETNX, and SET NX with or without GET.
func (p *Plane) acquire(ctx context.Context, call Command, o options, reads wording) answer {
	request := redlock.AcquireRequest{DB: call.DB, Key: call.Args[1], Value: call.Args[2], TTL: o.lives(call), Get: o.get}
	if call.mayWait() && (request.TTL == 0 || request.TTL >= shortestInLine) {
		return p.acquireInLine(ctx, request, call.Route.Rule, reads)
	}
	return p.acquireOnce(ctx, request, reads)
}

// acquireOnce asks the masters for a lock.
func (p *Plane) acquireOnce(ctx context.Context, r redlock.AcquireRequest, reads wording) answer {
	o := p.Locker.Acquire(ctx, r)
	if !r.Get {
		return answer{kind: redlock.KindAcquire, outcome: o, reads: reads, ttl: r.TTL}
	}
	// The old value is nil if and only if the lock was won.
	switch {
	case o.Err != "":
	case o.Verdict == redlock.Won:
		o.Value = nil
	case o.Verdict == redlock.Lost && o.Value == nil:
		return rejection(redlock.KindAcquire, errorHolderVanished)
	}
	return answer{kind: redlock.KindAcquire, outcome: o, reads: readsValue, ttl: r.TTL}
}

// lives is the time to live of the command's lock: the command's own, or else the rule's
// default_ttl. 0 means for ever, or with KEEPTTL as long as before.
func (o options) lives(call Command) time.Duration {
	if rule := call.Route.Rule; rule != nil && o.ttl == 0 && (o.onlyAbsent || !o.keepTTL) {
		return rule.DefaultTTL
	}
	return lockTTL(o.ttl)
}

// acquireInThePast carries out SET NX with a time that has passed. A single Redis
// refuses it if the key exists. Otherwise it answers OK and leaves no key.
func (p *Plane) acquireInThePast(ctx context.Context, call Command, with options) answer {
	if with.get {
		return answer{kind: redlock.KindRead, outcome: p.Locker.Get(ctx, call.DB, call.Args[1]), reads: readsValue}
	}
	o := p.Locker.Exists(ctx, call.DB, call.Args[1])
	switch o.Verdict {
	case redlock.Won:
		o.Verdict = redlock.Lost
	case redlock.Lost:
		o.Verdict = redlock.Won
	}
	return answer{kind: redlock.KindRead, outcome: o, reads: readsStatus}
}

// swap carries out GETSET, and SET GET without NX, as an examined run.
func (p *Plane) swap(ctx context.Context, call Command, o options) answer {
	ttl := o.lives(call)
	if o.ttl == 0 && ttl > 0 { // the rule's default_ttl
		call.Args = [][]byte{[]byte("SET"), call.Args[1], call.Args[2], []byte("GET"), []byte("PX"), strconv.AppendInt(nil, ttl.Milliseconds(), 10)}
		if o.onlyPresent {
			call.Args = append(call.Args, []byte("XX"))
		}
	}
	a := p.run(ctx, call, o)
	a.kind, a.ttl, a.keepsTTL = redlock.KindSwap, ttl, o.keepTTL
	return a
}

// release deletes the command's one key. If the reply has the key's value, a key that is no
// string is an error.
func (p *Plane) release(ctx context.Context, call Command, reads wording) answer {
	o := p.Locker.Release(ctx, redlock.ReleaseRequest{DB: call.DB, Key: call.Args[1], Get: reads == readsValue})
	if o.Verdict != redlock.Won {
		o.Value = nil
	}
	return answer{kind: redlock.KindRelease, outcome: o, reads: reads}
}

// expire carries out the EXPIRE family. refusal is the parser's error, or empty.
func (p *Plane) expire(ctx context.Context, call Command, o options, refusal wire.Error) answer {
	switch {
	case refusal != "":
		return rejection(redlock.KindExtend, refusal)
	case o.bothXXLT || o.ends() && o.expires != "":
		return p.run(ctx, call, o)
	case o.ends(): // else votes of a client that is just acquiring would end
		return p.release(ctx, call, readsOne)
	}
	ttl := lockTTL(o.ttl)
	outcome := p.Locker.Extend(ctx, redlock.ExtendRequest{DB: call.DB, Key: call.Args[1], TTL: ttl, Condition: o.expires})
	return answer{kind: redlock.KindExtend, outcome: outcome, reads: readsOne, ttl: ttl}
}

// run has the masters run any other command as an examined run.
func (p *Plane) run(ctx context.Context, call Command, o options) answer {
	request := p.runRequest(call)
	request.Args, request.Deletes = o.relative(call.Args), call.deletes(o)
	if call.Route.Spec.Blocking() {
		outcome := p.runBlocking(ctx, request)
		return answer{kind: redlock.KindRun, outcome: outcome, reads: readsReply, ttl: outcome.Lives}
	}
	return p.examine(ctx, request, call.Leases)
}

// examine has the masters run a command that may take a lock. Only the outcome tells
// how long that lock lives. client has the client's leases.
func (p *Plane) examine(ctx context.Context, r redlock.RunRequest, client *lease.Holder) answer {
	r.Deleted = p.Leases.Deletions(&r, client)
	o := p.Locker.Run(ctx, r)
	return answer{kind: redlock.KindRun, outcome: o, reads: readsReply, ttl: o.Lives}
}

func (p *Plane) runRequest(call Command) redlock.RunRequest {
	return redlock.RunRequest{
		DB: call.DB, Keys: call.Keys(), Args: call.Args,
		RESP3: call.Version == wire.RESP3, ReadOnly: call.Route.Spec.Readonly(), Effects: true,
	}
}
