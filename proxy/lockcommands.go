package proxy

import (
	"context"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// set carries out SET, SETEX and PSETEX; reply is the error they were read
// with.
func (p *lockPlane) set(ctx context.Context, call lockCall, c setCommand, reply string) answer {
	switch {
	case c.onlyAbsent && !c.conditional:
		if reply != "" {
			return rejection(redlock.KindAcquire, reply)
		}
		if c.over {
			return p.acquireInThePast(ctx, call, c)
		}
		return p.acquire(ctx, call, c, readsStatus)
	case c.get && !c.conditional:
		if reply != "" {
			return rejection(redlock.KindSwap, reply)
		}
		if c.over {
			return p.take(ctx, call)
		}
		return p.swap(ctx, call, c)
	case reply != "":
		return rejection(redlock.KindRun, reply)
	case c.over && !c.conditional:
		// Written and gone at once, which for whoever held it is a release. The
		// masters never see it: it would erase votes of a client that is just
		// acquiring.
		a := answer{kind: redlock.KindRelease, reads: readsOK}
		if c.onlyPresent {
			a.reads = readsStatus
		}
		a.outcome = p.locker.Release(ctx, redlock.ReleaseRequest{DB: call.db, Key: call.args[1]})
		return a
	}
	return p.run(ctx, call, c.relative(call.args))
}

// acquire is SET NX and SETNX, with GET or without.
func (p *lockPlane) acquire(ctx context.Context, call lockCall, c setCommand, reads wording) answer {
	request := redlock.AcquireRequest{DB: call.db, Key: call.args[1], Value: call.args[2], TTL: lockTTL(c.ttl), Get: c.get}
	if request.TTL == 0 {
		request.TTL = p.defaultTTL(call.db, request.Key)
	}
	a := answer{kind: redlock.KindAcquire, outcome: p.locker.Acquire(ctx, request), reads: reads}
	p.took(a.outcome, call.db, request.Key, request.TTL)
	if c.get {
		a.oldValue(a.outcome.Verdict == redlock.Won && a.outcome.Err == "")
	}
	return a
}

// oldValue makes an acquire's answer that of GET: nil if the lock was won and
// never otherwise.
func (a *answer) oldValue(won bool) {
	a.reads = readsValue
	switch {
	case won:
		a.outcome.Value = nil
	case a.outcome.Verdict == redlock.Lost && a.outcome.Err == "" && a.outcome.Value == nil:
		a.rejected = errorHolderVanished
	}
}

// acquireInThePast is SET NX with a time that has passed: on one Redis it is
// refused if the key is there, and else leaves nothing behind.
func (p *lockPlane) acquireInThePast(ctx context.Context, call lockCall, c setCommand) answer {
	if c.get {
		return answer{kind: redlock.KindRead, outcome: p.locker.Get(ctx, call.db, call.args[1]), reads: readsValue}
	}
	o := p.locker.Exists(ctx, call.db, call.args[1])
	a := answer{kind: redlock.KindRead, outcome: o, reads: readsStatus}
	switch o.Verdict {
	case redlock.Won:
		a.outcome.Verdict = redlock.Lost
	case redlock.Lost:
		a.outcome.Verdict = redlock.Won
	}
	return a
}

// swap is GETSET and SET GET without NX.
func (p *lockPlane) swap(ctx context.Context, call lockCall, c setCommand) answer {
	request := redlock.SwapRequest{
		DB: call.db, Key: call.args[1], Value: call.args[2],
		TTL: lockTTL(c.ttl), KeepTTL: c.keepTTL, OnlyExisting: c.onlyPresent,
		Expected: call.lastRead.take(call.db, call.args[1]),
	}
	if request.TTL == 0 && !request.KeepTTL {
		request.TTL = p.defaultTTL(call.db, request.Key)
	}
	o := p.locker.Swap(ctx, request)
	if !request.KeepTTL {
		p.took(o, call.db, request.Key, request.TTL)
	}
	return answer{kind: redlock.KindSwap, outcome: o, reads: readsValue}
}

// take is GETDEL and what comes to the same: the value as reply, and the key
// deleted. A key that is no string is an error.
func (p *lockPlane) take(ctx context.Context, call lockCall) answer {
	o := p.locker.Release(ctx, redlock.ReleaseRequest{DB: call.db, Key: call.args[1], Get: true})
	if o.Verdict != redlock.Won {
		o.Value = nil
	}
	return answer{kind: redlock.KindRelease, outcome: o, reads: readsValue}
}

// expire carries out the EXPIRE family; reply is the error it was read with.
func (p *lockPlane) expire(ctx context.Context, call lockCall, c expireCommand, reply string) answer {
	switch {
	case reply != "":
		return rejection(redlock.KindExtend, reply)
	case c.bothXXLT || c.ttl <= 0 && !c.unconditional():
		return p.run(ctx, call, c.relative(call.args))
	case c.ttl <= 0:
		o := p.locker.Release(ctx, redlock.ReleaseRequest{DB: call.db, Key: call.args[1]})
		return answer{kind: redlock.KindRelease, outcome: o, reads: readsOne}
	}
	o := p.locker.Extend(ctx, redlock.ExtendRequest{DB: call.db, Key: call.args[1], TTL: lockTTL(c.ttl), Condition: c.condition})
	p.took(o, call.db, call.args[1], lockTTL(c.ttl))
	return answer{kind: redlock.KindExtend, outcome: o, reads: readsOne}
}

// remaining is the TTL family; name sets the unit.
func (p *lockPlane) remaining(ctx context.Context, call lockCall, name string) answer {
	o := p.locker.TTL(ctx, redlock.TTLRequest{DB: call.db, Key: call.args[1], Name: name})
	return answer{kind: redlock.KindRead, outcome: o, reads: readsNumber}
}

// run has the masters do any other command as an examined run.
func (p *lockPlane) run(ctx context.Context, call lockCall, args [][]byte) answer {
	request := p.runRequest(call)
	request.Args = args
	if call.route.Spec.Blocking() {
		return ran(p.runBlocking(ctx, request))
	}
	return ran(p.runTaking(ctx, request))
}

func (p *lockPlane) runRequest(call lockCall) redlock.RunRequest {
	return redlock.RunRequest{
		DB: call.db, Keys: lockKeys(call), Args: call.args,
		RESP3: call.version == wire.RESP3, ReadOnly: call.route.Spec.Readonly(),
	}
}

func ran(o redlock.Outcome) answer {
	return answer{kind: redlock.KindRun, outcome: o, reads: readsReply}
}

// defaultTTL is what the rule gives to a lock without TTL; 0: none.
func (p *lockPlane) defaultTTL(db int, key []byte) time.Duration {
	if rule := p.lockRules().Find(db, key); rule != nil {
		return rule.DefaultTTL
	}
	return 0
}
