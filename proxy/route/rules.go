package route

import (
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock/resp"
)

// AnyDB means every database. A rule with AnyDB applies to all databases. A caller
// passes AnyDB for a name that is in no database, such as a channel's.
const AnyDB = -1

// Rule says which keys are locks. Its tags name what proxies should have in common (Hash in
// package config).
type Rule struct {
	Match      string        `json:"match"`                 // a Redis glob over the whole key
	DB         int           `json:"db"`                    // AnyDB for every database
	DefaultTTL time.Duration `json:"default_ttl,omitempty"` // the TTL of a lock that a client takes without one; 0: none
	Wait       time.Duration `json:"wait,omitempty"`        // the longest time for which a refused acquire waits for the lock; 0: it does not
	Renew      time.Duration `json:"renew,omitempty"`       // a lock is renewed for so long while its connection is open; 0: never
	Release    bool          `json:"release,omitempty"`     // a lock is released when its client ends the connection
	Companions []string      `json:"companions,omitempty"`  // globs: keys and channels that go where the locks go
}

// Rules are lock rules in the order of the configuration. They are shared and never
// change.
type Rules []Rule

// Find returns the first rule that matches key, or nil.
func (r Rules) Find(db int, key []byte) *Rule {
	for i := range r {
		rule := &r[i]
		if rule.in(db) && (rule.Match == "*" || resp.GlobMatch(rule.Match, key)) {
			return rule
		}
	}
	return nil
}

// Lease tells whether some rule renews or releases locks with their connections.
func (r Rules) Lease() bool {
	for i := range r {
		if r[i].Renew > 0 || r[i].Release {
			return true
		}
	}
	return false
}

// Name names the rule in logs. A nil rule is that of a lock which is only a companion
// of others.
func (r *Rule) Name() string {
	if r == nil {
		return "companion"
	}
	return r.Match
}

// Label returns the name as the label of a metric, which must be UTF-8.
func (r *Rule) Label() string { return strings.ToValidUTF8(r.Name(), "?") }

// Labels returns the label of each rule.
func (r Rules) Labels() (labels []string) {
	for i := range r {
		labels = append(labels, r[i].Label())
	}
	return labels
}

// Waiting returns the rules with a wait.
func (r Rules) Waiting() Rules {
	return slices.DeleteFunc(slices.Clone(r), func(rule Rule) bool { return rule.Wait == 0 })
}

// Example returns a key that the rule matches in database 0, for the user to try out.
// It returns "" if the rule is not for database 0, or if its glob is not simple.
func (r *Rule) Example() string {
	if r.DB > 0 || strings.Count(r.Match, "*") != 1 || strings.ContainsAny(r.Match, "?[\\ '\"") {
		return ""
	}
	return strings.Replace(r.Match, "*", "demo", 1)
}

// mayBegin tells whether some rule may match a key that begins with c. If all rules
// are prefixes, this saves the further checks for nearly every key.
func (r Rules) mayBegin(c byte) bool {
	for i := range r {
		if match := r[i].Match; match != "" && (match[0] == c || !resp.IsLiteral(match[:1])) {
			return true
		}
	}
	return false
}

func (r *Rule) in(db int) bool {
	return r.DB == AnyDB || db == AnyDB || r.DB == db
}
