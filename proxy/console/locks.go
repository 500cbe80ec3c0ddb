package console

import (
	"context"
	"time"

	"redlock-proxy/proxy/journal"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/inspect"
	"redlock-proxy/redlock/resp"
)

const (
	usualLocks = 100    // that LOCKS shows without COUNT
	mostLocks  = 10_000 // that it can show
	// walkPatience bounds one LOCKS.
	walkPatience = time.Minute
)

const errCount wire.Error = "-ERR COUNT must be between 1 and 10000\r\n"

// A heldLock is one line of LOCKS.
type heldLock struct {
	db      int
	key     string
	holding inspect.Holding
	holder  journal.Holder
	known   bool // who the holder is
}

// locks shows the locks that are held. One LOCKS runs at a time.
func (c *Console) locks(ctx context.Context, r *reply, call Command) {
	glob, count, refusal := parseLocks(call.Args[2:])
	if refusal != "" {
		r.refuse(refusal)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, walkPatience)
	defer cancel()
	select {
	case c.walking <- struct{}{}:
		defer func() { <-c.walking }()
	case <-ctx.Done():
		r.refuse("-TRYAGAIN another REDLOCK LOCKS is running\r\n")
		return
	}
	var list []heldLock
	own, more := c.ownRules(call), false
	complete := c.Reader.Walk(ctx, glob,
		func(db int, key []byte) bool { return own.Find(db, key) != nil },
		func(db int, key []byte, copies []inspect.Copy) bool {
			holding, now := inspect.Hold(copies), time.Now()
			if holding.State != inspect.Held {
				return true
			}
			if len(list) == count {
				more = true
				return false
			}
			h := heldLock{db: db, key: string(key), holding: holding}
			h.holder, h.known = c.Journal.Holder(db, key, holding.Text, now)
			list = append(list, h)
			return true
		})
	r.fields(3)
	r.integerField("complete", map[bool]int64{true: 1}[complete])
	r.integerField("more", map[bool]int64{true: 1}[more])
	c.writeLocks(r, list)
}

func (c *Console) writeLocks(r *reply, list []heldLock) {
	waiters, now := c.waiters(), time.Now()
	r.text("locks")
	r.array(len(list))
	for _, l := range list {
		r.fields(9)
		r.textField("key", l.key)
		r.integerField("db", int64(l.db))
		r.textField("type", l.holding.Type)
		r.textField("digest", l.holding.Digest)
		r.holderField(l.holder, l.known)
		r.text("held-ms")
		if l.known {
			r.integer(heldFor(l.holder, true, now).Milliseconds())
		} else {
			r.null()
		}
		r.ttlField(l.holding.Copy)
		r.integerField("masters", int64(l.holding.Holders))
		r.integerField("waiters", waiters[waitedFor{l.db, l.key}])
	}
}

// parseLocks reads [MATCH glob] [COUNT n].
func parseLocks(args [][]byte) (glob string, count int, refusal wire.Error) {
	count = usualLocks
	for ; len(args) >= 2; args = args[2:] {
		switch {
		case wire.IsWord(args[0], "MATCH"):
			glob = string(args[1])
		case wire.IsWord(args[0], "COUNT"):
			n, ok := resp.ParseDecimal(args[1])
			switch {
			case !ok:
				return "", 0, wire.ErrNotInteger
			case n < 1 || n > mostLocks:
				return "", 0, errCount
			}
			count = int(n)
		default:
			return "", 0, wire.ErrSyntax
		}
	}
	if len(args) > 0 {
		return "", 0, wire.ErrSyntax
	}
	return glob, count, ""
}
