package console

import (
	"context"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/scan"
)

const (
	usualLocks = 100    // that LOCKS shows without COUNT
	mostLocks  = 10_000 // that it can show
	// longestGlob bounds MATCH, in bytes. It is compared with every key.
	longestGlob = 1024
	// walkPatience bounds one LOCKS.
	walkPatience = time.Minute
)

const errCount wire.Error = "-ERR COUNT must be between 1 and 10000\r\n"

const errGlob wire.Error = "-ERR the pattern of MATCH must have at most 1024 bytes\r\n"

// Held are locks that are held.
type Held struct {
	Locks []HeldLock
	More  bool // there are more that match
	// Complete means that every lock that was held all the time and matches is in Locks. It
	// is false if a key may be held, or is held with copies that differ: Locks lacks these.
	Complete bool
}

// A HeldLock is one of them. Its Holding has no Text: that is a secret.
type HeldLock struct {
	DB      int
	Key     string
	Holding scan.Holding
	Holder  events.Holder
	Known   bool  // who the holder is
	Waiters int64 // clients of this process that wait for it
}

// Held returns locks whose keys match a glob, count at most. It shares its turn with
// LOCKS: ok is false if ctx ended before the turn came. If ctx ends later, the result is
// incomplete.
func (c *Console) Held(ctx context.Context, glob string, count int) (h Held, ok bool) {
	rules := c.Active.Load().Router.Rules
	select {
	case c.walking <- struct{}{}:
		defer func() { <-c.walking }()
	case <-ctx.Done():
		return h, false
	}
	seen, unclear := map[keyInDB]bool{}, map[keyInDB]bool{} // a key comes once for each master, or more often
	matches := func(key []byte) bool { return glob == "" || glob == "*" || resp.GlobMatch(glob, key) }
	all := c.Reader.Walk(ctx,
		func(db int, key []byte) bool {
			return matches(key) && rules.Find(db, key) != nil && string(key) != redlock.MarkerKey && !seen[keyInDB{db, string(key)}]
		},
		func(db int, key []byte, copies []scan.Copy) bool {
			holding, now := scan.Hold(copies), time.Now()
			at := keyInDB{db, string(key)}
			if seen[at] {
				return true
			}
			delete(unclear, at) // the latest look counts
			if holding.State != scan.Held {
				if holding.State != scan.Free {
					unclear[at] = true
				}
				return true
			}
			if len(h.Locks) == count {
				h.More = true
				return false
			}
			seen[at] = true
			l := HeldLock{DB: db, Key: at.key}
			l.Holder, l.Known = c.Journal.Holder(db, key, holding.Text, now)
			holding.Text = nil
			l.Holding = holding
			h.Locks = append(h.Locks, l)
			return true
		})
	h.Complete = all && len(unclear) == 0
	waiters := c.waiters()
	for i := range h.Locks {
		l := &h.Locks[i]
		l.Waiters = waiters[keyInDB{l.DB, l.Key}]
	}
	return h, true
}

// locks shows the locks that are held.
func (c *Console) locks(ctx context.Context, call Command) any {
	glob, count, refusal := parseLocks(call.Args[2:])
	if refusal != "" {
		return refusal
	}
	ctx, cancel := context.WithTimeout(ctx, walkPatience)
	defer cancel()
	held, ok := c.Held(ctx, glob, count)
	if !ok {
		return wire.Error("-TRYAGAIN another REDLOCK LOCKS is running; ask again when it has ended\r\n")
	}
	now := time.Now()
	return pairs{"complete", held.Complete, "more", held.More, "locks", listOf(held.Locks, func(_ int, l HeldLock) any {
		since := any(nil)
		if l.Known {
			since = heldFor(l.Holder, true, now)
		}
		return pairs{
			"key", l.Key, "db", l.DB, "type", l.Holding.Type, "digest", l.Holding.Digest, "holder", holderOf(l.Holder, l.Known), "held-ms", since,
			"ttl-ms", ttlOf(l.Holding.Copy), "masters", l.Holding.Holders, "waiters", l.Waiters,
		}
	})}
}

// parseLocks reads [MATCH glob] [COUNT n].
func parseLocks(args [][]byte) (glob string, count int, refusal wire.Error) {
	count = usualLocks
	for ; len(args) >= 2; args = args[2:] {
		switch {
		case wire.IsWord(args[0], "MATCH"):
			if len(args[1]) > longestGlob {
				return "", 0, errGlob
			}
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
