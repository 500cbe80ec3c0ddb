package console

import (
	"context"
	"fmt"
	"strings"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/scan"
)

const errNoLockKey wire.Error = "-ERR no lock rule covers this key in this database; REDLOCK RULES has the rules\r\n"

// why shows what each master holds under a key, and what this process knows of it.
func (c *Console) why(_ context.Context, call Command) any {
	key := call.Args[2]
	if call.Route.Plane != route.Locks {
		return errNoLockKey
	}
	copies := c.Reader.Look(call.DB, [][]byte{key})[0]
	owing := c.Reader.Outstanding(call.DB, key)
	now, state, holding := time.Now(), c.Masters(), scan.Hold(copies)
	holder, known := c.Journal.Holder(call.DB, key, holding.Text, now)
	known = known && holding.Type != ""
	masters := min(len(copies), len(state.Masters), len(owing)) // a reload may change the masters meanwhile
	return pairs{
		"key", string(key), "db", call.DB, "summary", summary(holding, heldFor(holder, known, now)) + state.Absent(),
		"holder", holderOf(holder, known), "waiters", c.waiters()[keyInDB{call.DB, string(key)}],
		"masters", listOf(copies[:masters], func(i int, copied scan.Copy) any {
			master := state.Masters[i]
			return pairs{
				"number", i + 1, "name", master.Name, "state", master.State.String(), "reason", master.Reason,
				"type", describeType(copied), "digest", copied.Digest, "ttl-ms", ttlOf(copied), "owes-answer", owing[i],
			}
		}),
		"verdicts", listOf(c.Journal.Verdicts(call.DB, key), func(_ int, v events.Mark) any {
			return pairs{"time", v.At, "verdict", v.Verdict.String(), "addr", v.Client.Address, "name", v.Client.Name}
		}),
	}
}

// describeType is TYPE's reply, "none" for an absent key, or empty if there was no answer.
func describeType(c scan.Copy) string {
	if c.Heard && c.Type == "" {
		return "none"
	}
	return c.Type
}

// ttlOf is nil if the key is absent or does not expire.
func ttlOf(c scan.Copy) any {
	if c.Type == "" || c.TTL == scan.NoTTL {
		return nil
	}
	return c.TTL
}

// holderOf is who took a lock through this process, or nil.
func holderOf(h events.Holder, known bool) any {
	if !known {
		return nil
	}
	return pairs{"id", h.Client.ID, "addr", h.Client.Address, "name", h.Client.Name, "connected", !h.Client.Gone, "since", h.Since}
}

func heldFor(h events.Holder, known bool, now time.Time) time.Duration {
	if !known {
		return -1
	}
	return max(0, now.Sub(h.Since))
}

// summary says in one sentence who holds a lock, without the value. held is negative if
// nobody knows for how long.
func summary(h scan.Holding, held time.Duration) string {
	count := func(n int) string { return fmt.Sprintf("%d of %d", n, h.Masters) }
	switch h.State {
	case scan.Held:
		text := "held by " + count(h.Holders) + " (" + content(h) + ")"
		if held >= 0 {
			text += fmt.Sprintf(" for %.1f s", held.Seconds())
		}
		if h.TTL == scan.NoTTL {
			return text + ", without TTL"
		}
		return text + fmt.Sprintf(", %.1f s left", h.TTL.Seconds())
	case scan.Disputed:
		return "held, but the copies differ: the most frequent content (" + content(h) + ") is on " + count(h.Holders)
	case scan.Unknown:
		text := "unknown: " + count(h.Missing) + " cannot vote"
		if h.Holders > 0 {
			text += ", and " + count(h.Holders) + " hold it (" + content(h) + ")"
		}
		return text
	}
	if h.Holders > 0 {
		return "free: a copy is on " + count(h.Holders) + " only, and " + fmt.Sprint(h.Needed) + " are needed"
	}
	return "free: no master that may vote holds it"
}

// content identifies what most masters hold, without showing it.
func content(h scan.Holding) string {
	if h.Large {
		return "too large to compare"
	}
	return h.Digest
}

// A keyInDB is a key in a database.
type keyInDB struct {
	db  int
	key string
}

// waiters counts, for each key, the clients whose lock command has no answer yet.
func (c *Console) waiters() map[keyInDB]int64 {
	waiting := map[keyInDB]int64{}
	for _, client := range c.Clients() {
		if client.Command != "" && client.Key != "" {
			waiting[keyInDB{client.DB, client.Key}]++
		}
	}
	return waiting
}

// breakLock releases a lock as DEL does, whoever holds it, and logs who did that.
func (c *Console) breakLock(ctx context.Context, call Command) any {
	key := call.Args[2]
	if call.Route.Plane != route.Locks {
		return errNoLockKey
	}
	holding := scan.Hold(c.Reader.Look(call.DB, [][]byte{key})[0])
	holder, _ := c.Journal.Holder(call.DB, key, holding.Text, time.Now())
	args := [][]byte{[]byte("DEL"), key}
	answer := c.Locks.Do(ctx, nil, lock.Command{
		DB: call.DB, Args: args, Route: c.Active.Load().Router.Route(call.DB, args),
		Version: call.Version, Client: call.Client, From: call.From,
	})
	c.Log.Warn("an operator broke a lock; tell its holder", "key", string(key), "db", call.DB, "digest", holding.Digest, "holder", holder.Client.Address,
		"client", call.Client, "user", call.User.Name, "reply", strings.TrimSpace(string(answer)))
	return answer
}
