package lock

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// Transaction is the commands on lock keys between MULTI and EXEC. The plane does not
// keep its slices.
type Transaction struct {
	DB       int
	Commands []Command // the session has checked names, arity, and that no key is the upstream's
	Watches  []*redlock.Watch
	Version  wire.Version
	Leases   *lease.Holder // as in Command
}

// Watch reads lock keys as WATCH does. If it fails, it returns a whole error reply
// instead of a watch.
func (p *Plane) Watch(ctx context.Context, db int, keys [][]byte) (*redlock.Watch, wire.Error) {
	p.awaitStart(ctx)
	w, o := p.Locker.Watch(ctx, db, keys)
	if o.Verdict == redlock.NoQuorum {
		return nil, wire.Error(appendErrorText(nil, quorumLost(o)))
	}
	return w, ""
}

// Exec runs a transaction on the masters as one examined run. It appends the one reply
// to dst.
func (p *Plane) Exec(ctx context.Context, dst []byte, t Transaction) []byte {
	r := record{name: "exec", db: t.DB, leases: t.Leases}
	r.begin(t.Commands)
	p.awaitStart(ctx)
	r.answer = p.decideTransaction(ctx, t)
	return p.end(ctx, &r, t.Commands).append(dst, t.Version)
}

func (p *Plane) decideTransaction(ctx context.Context, t Transaction) answer {
	request := redlock.RunRequest{DB: t.DB, RESP3: t.Version == wire.RESP3, Watches: t.Watches, Transaction: [][][]byte{}, Effects: true}
	now := time.Now()
	for _, call := range t.Commands {
		o, _ := call.options(now)
		request.Transaction = append(request.Transaction, o.relative(call.Args))
		request.Keys = appendMissing(request.Keys, call.Keys())
		request.Deletes = appendMissing(request.Deletes, call.deletes(o))
		switch call.Route.Spec.Name {
		case "eval", "eval_ro":
			p.Scripts.Register(call.Args[1])
		case "evalsha", "evalsha_ro":
			if text, known := p.Scripts.Get(call.Args[1]); known {
				request.Scripts = append(request.Scripts, text)
			}
		}
	}
	for _, w := range t.Watches {
		request.Keys = appendMissing(request.Keys, w.Keys())
	}
	return p.examine(ctx, request, t.Leases)
}

// deletes returns the keys that a command deletes, whoever holds them. A bare deletion would erase the
// votes of a client that is just acquiring. So it goes only to masters that hold what a quorum holds.
func (c Command) deletes(o options) [][]byte {
	keys := c.Keys()
	switch name := c.Route.Spec.Name; {
	case name == "rename", name == "renamenx":
		return keys[:min(1, len(keys))]
	case name == "bitop":
		return c.replaces(2)
	case strings.HasSuffix(name, "store") && name != "restore":
		return c.replaces(1)
	case name == "sort", name == "georadius", name == "georadiusbymember":
		if k := c.Route.Keys; len(k) > 1 && !bytes.Equal(c.Args[k[0]], c.Args[k[1]]) {
			return c.Args[k[1] : k[1]+1 : k[1]+1]
		}
		return nil
	case name == "del", name == "unlink", name == "getdel", name == "delex" && len(c.Args) == 2: // without a condition
		return keys
	}
	if o.ends() && !o.onlyAbsent && !o.conditional {
		return keys
	}
	return nil
}

// replaces returns the key that a command writes its result to. An empty result deletes the key. A key
// that the command also reads is left out: semaphores remove old entries like that.
func (c Command) replaces(at int) [][]byte {
	if at >= len(c.Args) || slices.ContainsFunc(c.Args[at+1:], func(arg []byte) bool { return bytes.Equal(arg, c.Args[at]) }) {
		return nil
	}
	return c.Args[at : at+1 : at+1]
}

// appendMissing appends those of more that keys does not have.
func appendMissing(keys, more [][]byte) [][]byte {
	for _, key := range more {
		if !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			keys = append(keys, key)
		}
	}
	return keys
}
