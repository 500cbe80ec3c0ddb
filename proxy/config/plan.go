package config

import (
	"fmt"
	"slices"

	"redlock-proxy/proxy/endpoint"
)

// Plan has the changes from the active configuration to a new one. It says neither
// whether the servers accept them, nor whether the masters may change so: package redlock says that.
type Plan struct {
	Changes []string // with the file's keys; never a secret
	New     []string // keys of servers that are other ones
	Entered []string // keys of servers whose credentials change
}

// PlanReload compares two configurations. If a reload cannot change some keys, it returns
// an Error that names each of them.
func PlanReload(old, next *Config) (Plan, error) {
	r := reloadReader{old: old, next: next}
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
		r.plan.New = append(r.plan.New, "upstream")
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
	}
	known := func(name string) func(endpoint.Endpoint) bool {
		return func(e endpoint.Endpoint) bool { return e.Name == name }
	}
	for i, server := range next.Servers {
		key := elementKey("masters", i)
		at := slices.IndexFunc(old.Servers, known(server.Name))
		switch {
		case at >= 0 && server.SameEntry(old.Servers[at]):
		case at >= 0:
			r.plan.Changes = append(r.plan.Changes, key+": credentials")
			r.plan.Entered = append(r.plan.Entered, key)
		case i >= len(old.Servers):
			r.plan.Changes = append(r.plan.Changes, key+": adds "+server.Name)
			r.plan.New = append(r.plan.New, key)
		case server.Same(old.Servers[i]):
			r.refuse(key, "%s is %s under another name; keep the active one", server.Name, old.Servers[i].Name)
		default:
			r.note(key, old.Servers[i].Name, server.Name)
			r.plan.New = append(r.plan.New, key)
		}
	}
	for i := len(next.Servers); i < len(old.Servers); i++ {
		r.plan.Changes = append(r.plan.Changes, elementKey("masters", i)+": removes "+old.Servers[i].Name)
	}
}
