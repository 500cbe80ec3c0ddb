package proxy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/proxy/route"
)

// reloadPlan is what a new configuration would change in the one in force. It
// says nothing about whether the servers agree.
type reloadPlan struct {
	changes     []string // in the file's words; never a secret
	locker      bool     // the masters or how they are asked
	replaced    int      // the master that another server replaces; -1: none
	newUpstream bool     // another server
	entered     []string // keys of servers that are entered with other credentials
}

// planReload compares two configurations. What a running process cannot
// change is a ConfigError that names each such key.
func planReload(old, next *Config) (reloadPlan, error) {
	r := reloadReader{old: old, next: next, plan: reloadPlan{replaced: -1}}
	r.fixed("listen", old.Listen, next.Listen)
	r.fixed("unix_permissions", old.UnixPermissions.String(), next.UnixPermissions.String())
	r.fixed("tls.listen", old.TLS.Listen, next.TLS.Listen)
	r.fixed("admin", old.Admin, next.Admin)
	r.fixed("log.format", old.Log.Format, next.Log.Format)
	r.upstream()
	r.masters()
	if !slices.EqualFunc(old.Locks, next.Locks, func(a, b route.Rule) bool { return describeRule(a) == describeRule(b) }) {
		r.note("locks", describeRules(old.Locks), describeRules(next.Locks))
	}
	asked := len(r.plan.changes)
	r.changed("master_timeout", shortDuration(old.MasterTimeout), shortDuration(next.MasterTimeout))
	r.changed("retry.count", old.Retry.Count, next.Retry.Count)
	r.changed("retry.delay", shortDuration(old.Retry.Delay), shortDuration(next.Retry.Delay))
	r.changed("clock_drift", old.ClockDrift, next.ClockDrift)
	r.changed("restart_delay", shortDuration(old.RestartDelay), shortDuration(next.RestartDelay))
	r.changed("max_quarantine", shortDuration(old.MaxQuarantine), shortDuration(next.MaxQuarantine))
	r.plan.locker = r.plan.locker || len(r.plan.changes) > asked || old.Limits.masterReply() != next.Limits.masterReply()
	if old.TLS.files != nil && next.TLS.files != nil && old.TLS.files.Options() != next.TLS.files.Options() {
		r.note("tls", old.TLS.describe(), next.TLS.describe())
	}
	r.changed("auth: by the upstream", old.Auth.Upstream, next.Auth.Upstream)
	r.changed("auth_cache", shortDuration(old.AuthCache), shortDuration(next.AuthCache))
	if old.Auth.Password != next.Auth.Password {
		r.plan.changes = append(r.plan.changes, "auth.password")
	}
	r.changed("auth.may", old.Auth.May, next.Auth.May)
	if changes := usersChanged(old.Auth.Users, next.Auth.Users); changes != "" {
		r.plan.changes = append(r.plan.changes, "auth.users: "+changes)
	}
	limits := next.Limits.table()
	for i, limit := range old.Limits.table() {
		r.changed("limits."+string(limit.name), limit.text(), limits[i].text())
	}
	r.changed("log.level", old.Log.Level, next.Log.Level)
	if len(r.refused) > 0 {
		return reloadPlan{}, r.refused
	}
	return r.plan, nil
}

type reloadReader struct {
	old, next *Config
	plan      reloadPlan
	refused   ConfigError
}

func (r *reloadReader) refuse(key, format string, values ...any) {
	r.refused = append(r.refused, r.next.problem(key, format, values...))
}

// problem words what is wrong with a key that was read well.
func (c *Config) problem(key, format string, values ...any) configProblem {
	return configProblem{c.Source, c.places[key], key, fmt.Sprintf(format, values...)}
}

func (r *reloadReader) note(key string, from, to any) {
	r.plan.changes = append(r.plan.changes, fmt.Sprintf("%s: %v -> %v", key, from, to))
}

func (r *reloadReader) changed(key string, from, to any) {
	if from != to {
		r.note(key, from, to)
	}
}

func (r *reloadReader) fixed(key, from, to string) {
	if from != to {
		r.refuse(key, "cannot be changed from %s to %s by a reload, only by a restart", cmp.Or(from, "-"), cmp.Or(to, "-"))
	}
}

func (r *reloadReader) upstream() {
	old, next := r.old.Upstream, r.next.Upstream
	if (old.Kind == UpstreamEmbedded) != (next.Kind == UpstreamEmbedded) {
		r.refuse("upstream", "cannot be changed from %s to %s by a reload, only by a restart", old, next)
		return
	}
	switch {
	case old.Kind != next.Kind, !old.server.Same(next.server):
		r.note("upstream", old, next)
		r.plan.newUpstream = next.Kind == UpstreamServer
		return
	case !old.server.SameEntry(next.server):
		r.plan.changes = append(r.plan.changes, "upstream: credentials")
		r.plan.entered = append(r.plan.entered, "upstream")
	}
	r.changed("upstream: database", old.server.DB, next.server.DB)
}

func (r *reloadReader) masters() {
	old, next := r.old.Masters, r.next.Masters
	switch {
	case old.Embedded != next.Embedded:
		r.refuse("masters", "cannot be changed from %s to %s by a reload, only by a restart", old, next)
		return
	case old.count() != next.count():
		r.refuse("masters", "lists %d, in force are %d: the number of masters cannot be changed by a reload, for old and new majorities need not overlap; build a new set",
			next.count(), old.count())
		return
	}
	before := len(r.refused)
	names := old.names()
	var replaced []string
	for i, server := range next.servers {
		key := fmt.Sprintf("masters[%d]", i)
		switch at := slices.Index(names, server.Name); {
		case at == i:
			if !server.SameEntry(old.servers[i]) {
				r.plan.changes = append(r.plan.changes, key+": credentials")
				r.plan.entered = append(r.plan.entered, key)
				r.plan.locker = true
			}
		case at >= 0:
			r.refuse(key, "%s was masters[%d]: the order of the masters cannot be changed by a reload, since each has its number in the set", server.Name, at)
		case server.Same(old.servers[i]):
			r.refuse(key, "%s is %s written in another way; keep what is in force", server.Name, names[i])
		default:
			replaced = append(replaced, key)
			r.plan.replaced, r.plan.locker = i, true
			r.note(key, names[i], server.Name)
		}
	}
	if len(replaced) > 1 && len(r.refused) == before {
		r.refuse(replaced[1], "only one master can be replaced at a time, and %s is another one: old and new majorities would not overlap; reload with one of them, wait until it votes, then replace the next",
			strings.Join(append(replaced[:1:1], replaced[2:]...), ", "))
	}
}
