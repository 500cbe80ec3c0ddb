package console

import (
	"context"
	"strings"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/wire"
)

// A subcommand is one that REDLOCK has.
type subcommand struct {
	name   string // as package route names it
	usage  string // for HELP
	help   []string
	answer func(c *Console, ctx context.Context, call Command) any // see reply.go
}

// subcommands are in the order of HELP.
func subcommands() []subcommand {
	return []subcommand{
		{"redlock|break", "BREAK <key>", []string{"Release a lock whoever holds it, as DEL does. The log says who did that."}, (*Console).breakLock},
		{"redlock|clients", "CLIENTS", []string{"Return each client of this proxy, and the lock command that it waits for."}, (*Console).clients},
		{"redlock|hot", "HOT", []string{"Return the ten keys that were refused most in the last five minutes."}, (*Console).hot},
		{"redlock|locks", "LOCKS [MATCH <pattern>] [COUNT <count>]", []string{"Return the locks that are held, and who took them (default: 100, at most 10000)."}, (*Console).locks},
		{"redlock|masters", "MASTERS", []string{"Return each lock master with its state, and why it does not vote."}, (*Console).masters},
		{"redlock|rules", "RULES", []string{"Return the lock rules, in their order."}, (*Console).rules},
		{"redlock|slowlog", "SLOWLOG GET [<count>] | LEN | RESET", []string{
			"Return or forget the lock commands that took limits.slow_command or longer,",
			"as SLOWLOG does (default: 10, -1 means all). Arguments after the first key are left out.",
		}, (*Console).slowlog},
		{"redlock|status", "STATUS", []string{"Return one line: whether locks can be decided now, and why not."}, (*Console).status},
		{"redlock|token", "TOKEN <key> <value>", []string{
			"Return a fencing token, if the lock has this value: an integer above all that were returned before.",
			"Otherwise return a null. Pass the token to what the lock protects, which must refuse smaller ones.",
		}, (*Console).noToken},
		{"redlock|unruled", "UNRULED", []string{
			"Return the patterns of keys that look like locks and match no rule, each with the rule to write.",
		}, (*Console).unruled},
		{"redlock|why", "WHY <key>", []string{"Return who holds a lock, what each master has under the key, and the last verdicts here."}, (*Console).why},
		{"redlock|help", "HELP", []string{"Prints this help."}, (*Console).help},
	}
}

// help replies as Redis's own commands do.
func (c *Console) help(context.Context, Command) any {
	lines := []line{"REDLOCK <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, s := range subcommands() {
		lines = append(lines, line(s.usage))
		for _, text := range s.help {
			lines = append(lines, "    "+line(text))
		}
	}
	return listOf(lines, func(_ int, l line) any { return l })
}

// noToken refuses TOKEN for a key that is no lock key. The lock plane answers it for others.
func (c *Console) noToken(context.Context, Command) any { return wire.ErrNoToken }

func (c *Console) status(context.Context, Command) any {
	return line(wire.OneLine([]byte(strings.ReplaceAll(c.Ready(), "\n", "; "))))
}

// masters shows the masters in the order of their numbers. Those that do not count come last.
func (c *Console) masters(context.Context, Command) any {
	return listOf(c.Masters().All(), func(i int, m events.Master) any {
		return pairs{
			"number", i + 1, "name", m.Name, "state", m.State.String(), "reason", m.Reason,
			"since", m.Since, "until", m.Until, "longest-ttl-ms", m.Longest,
		}
	})
}

// rules shows the lock rules.
func (c *Console) rules(context.Context, Command) any {
	return listOf(c.Active.Load().Router.Rules, func(_ int, rule route.Rule) any {
		db, onDisconnect := any(rule.DB), "keep"
		if rule.DB == route.AnyDB {
			db = nil
		}
		if rule.Release {
			onDisconnect = "release"
		}
		return pairs{
			"match", rule.Match, "db", db, "default-ttl-ms", rule.DefaultTTL, "wait-ms", rule.Wait, "renew-ms", rule.Renew,
			"on-disconnect", onDisconnect, "companions", rule.Companions,
		}
	})
}

// unruled shows the patterns of keys that look like locks and match no rule.
func (c *Console) unruled(context.Context, Command) any {
	return listOf(c.UnruledLocks(), func(_ int, found unruled.Found) any {
		return pairs{
			"pattern", found.Match, "uses", found.Uses, "first", found.First, "last", found.Last,
			"shape", found.Shape, "library", found.Library, "rule", found.Rule(),
		}
	})
}

// UnruledLocks are the patterns of keys that look like locks, and that no rule matches now.
func (c *Console) UnruledLocks() []unruled.Found {
	settings := c.Active.Load()
	return c.Unruled.Found(settings.Router.Rules, settings.Config.Ignore)
}
