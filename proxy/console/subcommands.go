package console

import (
	"context"
	"strings"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// A subcommand is one that REDLOCK has.
type subcommand struct {
	name   string // as package command names it
	usage  string // for HELP
	help   []string
	answer func(c *Console, ctx context.Context, r *reply, call Command)
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
func (c *Console) help(_ context.Context, r *reply, _ Command) {
	lines := []string{"REDLOCK <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
	for _, s := range subcommands() {
		lines = append(lines, s.usage)
		for _, line := range s.help {
			lines = append(lines, "    "+line)
		}
	}
	r.array(len(lines))
	for _, line := range lines {
		r.line(line)
	}
}

// noToken refuses TOKEN for a key that is no lock key. The lock plane answers it for others.
func (c *Console) noToken(_ context.Context, r *reply, _ Command) { r.refuse(wire.ErrNoToken) }

func (c *Console) status(_ context.Context, r *reply, _ Command) {
	r.line(wire.OneLine([]byte(strings.ReplaceAll(c.Ready(), "\n", "; "))))
}

// masters shows the masters in the order of their numbers. Those that do not count come last.
func (c *Console) masters(_ context.Context, r *reply, _ Command) {
	status := c.Status()
	for i := range status.Others {
		status.Others[i].Reason = strings.TrimSuffix("it is not counted: "+status.Others[i].Reason, ": ")
	}
	list := append(status.Masters, status.Others...)
	r.array(len(list))
	for i, master := range list {
		r.fields(7)
		r.integerField("number", int64(i+1))
		r.textField("name", master.Name)
		r.textField("state", master.State.String())
		r.textField("reason", master.Reason)
		r.timeField("since", c.Since(master.Name))
		r.timeField("until", master.Until)
		r.integerField("longest-ttl-ms", master.Longest.Milliseconds())
	}
}

// rules shows the lock rules.
func (c *Console) rules(_ context.Context, r *reply, _ Command) {
	rules := c.Active.Load().Router.Rules
	r.array(len(rules))
	for _, rule := range rules {
		r.fields(7)
		r.textField("match", rule.Match)
		r.text("db")
		if rule.DB == route.AnyDB {
			r.null()
		} else {
			r.integer(int64(rule.DB))
		}
		r.integerField("default-ttl-ms", rule.DefaultTTL.Milliseconds())
		r.integerField("wait-ms", rule.Wait.Milliseconds())
		r.integerField("renew-ms", rule.Renew.Milliseconds())
		r.textField("on-disconnect", onDisconnect(rule))
		r.listField("companions", rule.Companions)
	}
}

// onDisconnect is the rule's setting as the configuration writes it.
func onDisconnect(rule route.Rule) string {
	if rule.Release {
		return "release"
	}
	return "keep"
}

// unruled shows the patterns of keys that look like locks and match no rule.
func (c *Console) unruled(_ context.Context, r *reply, _ Command) {
	settings := c.Active.Load()
	list := c.Unruled.Found(settings.Router.Rules, settings.Config.Ignore)
	r.array(len(list))
	for _, found := range list {
		r.fields(7)
		r.textField("pattern", found.Match)
		r.integerField("uses", found.Uses)
		r.timeField("first", found.First)
		r.timeField("last", found.Last)
		r.textField("shape", found.Shape)
		r.textField("library", found.Library)
		r.textField("rule", found.Rule())
	}
}
