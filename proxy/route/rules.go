package route

import (
	"slices"
	"strings"
	"time"
)

// AnyDB means every database. A rule with AnyDB applies to all databases. A caller
// passes AnyDB for a name that is in no database, such as a channel's.
const AnyDB = -1

// Rule says which keys are locks. Its tags are the keys of the configuration (package config).
type Rule struct {
	Match      string        `yaml:"match"`                                               // a Redis glob over the whole key
	DB         int           `yaml:"db" range:"0 2147483647"`                             // AnyDB for every database
	DefaultTTL time.Duration `yaml:"default_ttl" range:"0s 8760h"`                        // the TTL of a lock that a client takes without one; 0: none
	Wait       time.Duration `yaml:"wait" range:"0s 1h"`                                  // the longest time for which a refused acquire waits for the lock; 0: it does not
	Renew      time.Duration `yaml:"renew" range:"0s 8760h"`                              // a lock is renewed for so long while its connection is open; 0: never
	Release    bool          `yaml:"on_disconnect" oneof:"keep release"`                  // a lock is released when its client ends the connection
	Companions []string      `yaml:"companions" list:"Redis globs such as [\"queue:*\"]"` // globs: keys and channels that go where the locks go
}

// Rules are lock rules in the order of the configuration. They are shared and never
// change.
type Rules []Rule

// Find returns the first rule that matches key, or nil.
func (r Rules) Find(db int, key []byte) *Rule {
	for i := range r {
		rule := &r[i]
		if rule.in(db) && (rule.Match == "*" || GlobMatch(rule.Match, key)) {
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
		if match := r[i].Match; match != "" && (match[0] == c || !isLiteral(match[:1])) {
			return true
		}
	}
	return false
}

func (r *Rule) in(db int) bool {
	return r.DB == AnyDB || db == AnyDB || r.DB == db
}

// GlobMatch tells whether text matches pattern. It decides as Redis's stringmatchlen
// does, for `*`, `?`, `[a-c]`, `[^a-c]` and `\`, and also for an unclosed or empty set.
// One thing differs: bytes are unsigned here, while a server compares the ends of a
// range as its machine's char. As in Redis, `*` does not match the empty string.
// Redis's commands with a pattern have a special case for a lone `*`, and so has Find.
func GlobMatch(pattern string, text []byte) bool {
	matched, _ := globFrom(pattern, text)
	return matched
}

// globFrom also returns whether the rest of the pattern matches nowhere in text. Then
// an earlier `*` need not try to match more bytes. Without this a pattern with many
// stars takes exponential time.
func globFrom(pattern string, text []byte) (matched, nowhere bool) {
	for len(pattern) > 0 && len(text) > 0 {
		switch pattern[0] {
		case '*':
			for len(pattern) > 1 && pattern[1] == '*' {
				pattern = pattern[1:]
			}
			rest := pattern[1:]
			if isLiteral(rest) { // prefix* and *suffix
				at := len(text) - len(rest)
				return at >= 0 && string(text[at:]) == rest, true
			}
			for ; len(text) > 0; text = text[1:] {
				matched, nowhere = globFrom(rest, text)
				if matched || nowhere {
					return matched, nowhere
				}
			}
			return false, true
		case '?':
		case '[':
			var in bool
			if in, pattern = globSet(pattern[1:], text[0]); !in {
				return false, false
			}
		case '\\':
			if len(pattern) > 1 {
				pattern = pattern[1:]
			}
			fallthrough
		default:
			if pattern[0] != text[0] {
				return false, false
			}
		}
		pattern, text = pattern[1:], text[1:]
		for len(text) == 0 && len(pattern) > 0 && pattern[0] == '*' {
			pattern = pattern[1:]
		}
	}
	return len(pattern) == 0 && len(text) == 0, false
}

// globSet tells whether c is in the set behind a `[`. It returns the rest of the
// pattern, beginning with the set's last byte.
func globSet(set string, c byte) (in bool, rest string) {
	negated := len(set) > 0 && set[0] == '^'
	if negated {
		set = set[1:]
	}
	for {
		switch {
		case len(set) == 0: // an unclosed set ends with the pattern
			return in != negated, "]"
		case len(set) >= 2 && set[0] == '\\':
			set = set[1:]
			in = in || set[0] == c
		case set[0] == ']':
			return in != negated, set
		case len(set) >= 3 && set[1] == '-':
			low, high := min(set[0], set[2]), max(set[0], set[2])
			in = in || low <= c && c <= high
			set = set[2:]
		default:
			in = in || set[0] == c
		}
		set = set[1:]
	}
}

// isLiteral tells whether pattern matches only itself.
func isLiteral(pattern string) bool {
	for i := range len(pattern) {
		switch pattern[i] {
		case '*', '?', '[', '\\':
			return false
		}
	}
	return true
}
