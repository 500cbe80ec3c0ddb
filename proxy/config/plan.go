package config

import (
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/proxy/endpoint"
)

// Plan has the changes from the active configuration to a new one. It does not say
// whether the servers accept them.
type Plan struct {
	Changes     []string // with the file's keys; never a secret
	Replaced    int      // the index of the master that another server replaces; -1: none
	Added       int      // the masters from this index on are added
	NewUpstream bool     // the upstream is another server
	Entered     []string // keys of servers whose credentials change
}

// PlanReload compares two configurations. If a reload cannot change some keys, it returns
// an Error that names each of them.
func PlanReload(old, next *Config) (Plan, error) {
	r := reloadReader{old: old, next: next, plan: Plan{Replaced: -1, Added: next.Masters.Count()}}
	before := old.settings()
	for i, s := range next.settings() {
		from, to := before[i].text(), s.text()
		switch place := s.place.(type) {
		case *Upstream:
			r.upstream()
		case *Masters:
			r.masters()
		case *endpoint.Secret:
			if *place != *before[i].place.(*endpoint.Secret) {
				r.plan.Changes = append(r.plan.Changes, s.name)
			}
		case *[]User:
			if changes := usersChanged(old.Auth.Users, next.Auth.Users); changes != "" {
				r.plan.Changes = append(r.plan.Changes, s.name+": "+changes)
			}
		default:
			if from != to && s.traits&atRestart != 0 {
				r.refuse(s.name, "cannot be changed from %s to %s by a reload, only by a restart", from, to)
			} else if from != to {
				r.note(s.name, from, to)
			}
		}
	}
	if len(r.refused) > 0 {
		return Plan{}, r.refused
	}
	return r.plan, nil
}

type reloadReader struct {
	old, next *Config
	plan      Plan
	refused   Error
}

func (r *reloadReader) refuse(key, format string, values ...any) {
	r.refused = append(r.refused, r.next.Problem(key, format, values...))
}

// Problem makes a problem at a key whose value itself is valid.
func (c *Config) Problem(key, format string, values ...any) Problem {
	return Problem{c.Source, c.places[key], key, fmt.Sprintf(format, values...)}
}

func (r *reloadReader) note(key string, from, to any) {
	r.plan.Changes = append(r.plan.Changes, fmt.Sprintf("%s: %v -> %v", key, from, to))
}

func (r *reloadReader) upstream() {
	old, next := r.old.Upstream, r.next.Upstream
	if (old.Kind == UpstreamEmbedded) != (next.Kind == UpstreamEmbedded) {
		r.refuse("upstream", "cannot be changed from %s to %s by a reload, only by a restart", old, next)
		return
	}
	switch {
	case old.Kind != next.Kind, !old.Server.Same(next.Server):
		r.note("upstream", old, next)
		r.plan.NewUpstream = next.Kind == UpstreamServer
		return
	case !old.Server.SameEntry(next.Server):
		r.plan.Changes = append(r.plan.Changes, "upstream: credentials")
		r.plan.Entered = append(r.plan.Entered, "upstream")
	}
	if old.Server.DB != next.Server.DB {
		r.note("upstream: database", old.Server.DB, next.Server.DB)
	}
}

func (r *reloadReader) masters() {
	old, next := r.old.Masters, r.next.Masters
	switch {
	case r.old.Learns() && old.Embedded && !next.Embedded:
		r.refuse("masters", "cannot be added by a reload: this process was started without masters, to learn; list them in the file, keep locks: learn, and restart; then a reload with -move-keys brings the rules")
		return
	case old.Embedded != next.Embedded:
		r.refuse("masters", "cannot be changed from %s to %s by a reload, only by a restart", old, next)
		return
	case old.Count() != next.Count():
		r.numberOfMasters()
	}
	before := len(r.refused)
	names := old.Names()
	var replaced []string
	for i, server := range next.Servers {
		key := fmt.Sprintf("masters[%d]", i)
		switch at := slices.Index(names, server.Name); {
		case at != i && old.Count() != next.Count():
			// numberOfMasters has judged it
		case at == i:
			if !server.SameEntry(old.Servers[i]) {
				r.plan.Changes = append(r.plan.Changes, key+": credentials")
				r.plan.Entered = append(r.plan.Entered, key)
			}
		case at >= 0:
			r.refuse(key, "%s was masters[%d]: the order of the masters cannot be changed by a reload, since each has its number in the set", server.Name, at)
		case server.Same(old.Servers[i]):
			r.refuse(key, "%s is %s under another name; keep the active one", server.Name, names[i])
		default:
			replaced = append(replaced, key)
			r.plan.Replaced = i
			r.note(key, names[i], server.Name)
		}
	}
	if len(replaced) > 1 && len(r.refused) == before {
		r.refuse(replaced[1], "only one master can be replaced at a time, and %s is another one: old and new majorities would not overlap; reload with one of them, wait until it votes, then replace the next",
			strings.Join(append(replaced[:1:1], replaced[2:]...), ", "))
	}
}

// numberOfMasters plans to add masters at the end of the list, or to remove the last ones.
func (r *reloadReader) numberOfMasters() {
	old, next := r.old.Masters, r.next.Masters
	stay := min(old.Count(), next.Count())
	names, wanted := old.Names(), next.Names()
	for i := range stay {
		switch {
		case names[i] == wanted[i]:
			continue
		case next.Count() > old.Count():
			r.refuse(fmt.Sprintf("masters[%d]", i), "is %s, and %s is active there: a reload adds masters at the end of the list only, and changes none of the others at the same time", wanted[i], names[i])
		default:
			r.refuse(fmt.Sprintf("masters[%d]", i), "is %s, and %s is active there: a reload removes only the last masters of the list; remove %s first, and when that is over replace %s by it", wanted[i], names[i], names[old.Count()-1], names[i])
		}
		return
	}
	what := "removes " + strings.Join(names[stay:], ", ")
	if next.Count() > old.Count() {
		what = "adds " + strings.Join(wanted[stay:], ", ")
	}
	r.plan.Added = stay
	r.note("masters", old.Count(), fmt.Sprintf("%d (%s, one at a time)", next.Count(), what))
}
