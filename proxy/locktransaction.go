package proxy

import (
	"bytes"
	"context"
	"slices"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// lockTransaction is what stood between MULTI and EXEC on lock keys. Its
// slices are not kept.
type lockTransaction struct {
	db       int
	commands []lockCall // checked already: names, arity, and that no key is the upstream's
	watches  []*redlock.Watch
	version  wire.Version
}

// look looks at lock keys as WATCH does. The reply is a whole error reply, or
// empty and the look is taken.
func (p *lockPlane) look(ctx context.Context, db int, keys [][]byte) (*redlock.Watch, string) {
	p.awaitStart(ctx)
	w, o := p.locker.Watch(ctx, db, keys)
	if o.Verdict == redlock.NoQuorum {
		return nil, string(appendErrorText(nil, o.NoQuorumError()))
	}
	return w, ""
}

// execute runs a transaction on the masters as one examined run and appends
// its one reply to dst.
func (p *lockPlane) execute(ctx context.Context, dst []byte, t lockTransaction) []byte {
	started := time.Now()
	p.awaitStart(ctx)
	a := p.unlessMoved(p.decideTransaction(ctx, t), t.commands...)
	took := time.Since(started)
	p.meter.LockCommand(a.kind.String(), a.verdict(), p.ruleOf(t.commands...), took.Seconds())
	p.tellUndecided(ctx, "exec", t.db, a.outcome, took)
	return a.append(dst, t.version)
}

func (p *lockPlane) decideTransaction(ctx context.Context, t lockTransaction) answer {
	request := redlock.RunRequest{DB: t.db, RESP3: t.version == wire.RESP3, Watches: t.watches, Transaction: [][][]byte{}}
	deletes := false
	for _, call := range t.commands {
		request.Transaction = append(request.Transaction, call.args)
		request.Keys = appendMissing(request.Keys, lockKeys(call))
		switch call.route.Spec.Name {
		case "del", "unlink":
			deletes = true
		case "eval", "eval_ro":
			p.scripts.register(call.args[1])
		case "evalsha", "evalsha_ro":
			if text, known := p.scripts.get(call.args[1]); known {
				request.Scripts = append(request.Scripts, text)
			}
		}
	}
	for _, w := range t.watches {
		request.Keys = appendMissing(request.Keys, w.Keys())
	}
	if deletes && len(t.watches) == 0 {
		// A bare DEL would erase the votes of a client that is just acquiring:
		// it only goes to masters that hold what a quorum holds.
		w, refusal := p.look(ctx, t.db, request.Keys)
		if refusal != "" {
			return rejection(redlock.KindRun, refusal)
		}
		request.Watches = []*redlock.Watch{w}
	}
	return ran(p.runTaking(ctx, request))
}

// appendMissing adds the keys that are not there yet.
func appendMissing(keys, more [][]byte) [][]byte {
	for _, key := range more {
		if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			keys = append(keys, key)
		}
	}
	return keys
}
