package route

import (
	"slices"
	"strings"
	"time"
)

// AnyDB stands for every database: in a rule, that it holds in all of them,
// and in a question, that it is about something in none (a channel).
const AnyDB = -1

// Rule says which keys are locks.
type Rule struct {
	Match      string        // a Redis glob over the whole key
	DB         int           // anyDB for every database
	DefaultTTL time.Duration // what a lock that asks for none is given; 0: none
	Companions []string      // globs: keys and channels that go where the locks go
	Users      []string      // who may use these locks; none: everybody who may use locks
	denied     bool          // in a list made for one user: not by that one
}

// Rules are in the order of the configuration. They are shared and never
// change.
type Rules []Rule

// Find is the first rule that matches key, nil if none does.
func (r Rules) Find(db int, key []byte) *Rule {
	for i := range r {
		rule := &r[i]
		if rule.in(db) && (rule.Match == "*" || GlobMatch(rule.Match, key)) {
			if rule.denied {
				return nil
			}
			return rule
		}
	}
	return nil
}

// ForUser are the rules as one user has them: of the keys whose first rule does
// not name the user none is a lock key, nor is what goes with those locks.
// They are these rules themselves where no rule denies the user anything.
func (r Rules) ForUser(name string) Rules {
	denied := func(rule Rule) bool { return len(rule.Users) > 0 && !slices.Contains(rule.Users, name) }
	if !slices.ContainsFunc(r, denied) {
		return r
	}
	own := slices.Clone(r)
	for i := range own {
		own[i].denied = denied(own[i])
	}
	return own
}

// DenySome: these are the rules of a user who may not use all locks.
func (r Rules) DenySome() bool {
	return slices.ContainsFunc(r, func(rule Rule) bool { return rule.denied })
}

// DeniesMore tells whether a user may use less of these rules than of others.
func (r Rules) DeniesMore(was Rules, name string) bool {
	before := was.ForUser(name)
	return slices.ContainsFunc(r.ForUser(name), func(rule Rule) bool {
		return rule.denied && !slices.ContainsFunc(before, func(b Rule) bool { return b.denied && b.Match == rule.Match && b.DB == rule.DB })
	})
}

// Name is for logs; a lock that is only a companion of others has no rule.
func (r *Rule) Name() string {
	if r == nil {
		return "companion"
	}
	return r.Match
}

// Label is the name as a metric's label, which must be UTF-8.
func (r *Rule) Label() string { return strings.ToValidUTF8(r.Name(), "?") }

// Example is a key that the rule matches in database 0, or "" where none is plain
// to see.
func (r *Rule) Example() string {
	if r.DB > 0 || strings.Count(r.Match, "*") != 1 || strings.ContainsAny(r.Match, "?[\\ '\"") {
		return ""
	}
	return strings.Replace(r.Match, "*", "demo", 1)
}

// mayBegin tells whether a rule could match some key that begins with c. For
// rules that are prefixes it spares nearly every key a closer look.
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

// GlobMatch answers as Redis's stringmatchlen does, which knows `*`, `?`,
// `[a-c]`, `[^a-c]` and `\`, in an unclosed or empty set too. Bytes are
// unsigned, where a server compares the ends of a range as its machine's char.
// That `*` does not match the empty string is Redis's as well; commands that
// take a pattern treat a lone `*` apart, and so does find.
func GlobMatch(pattern string, text []byte) bool {
	matched, _ := globFrom(pattern, text)
	return matched
}

// globFrom also says whether the pattern's rest was found to match nowhere in
// text, so that an earlier `*` need not try to swallow more: without it a
// pattern of many stars takes exponential time.
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

// globSet says whether c is in the set behind a `[`. The rest it returns
// begins with the set's last byte.
func globSet(set string, c byte) (in bool, rest string) {
	negated := len(set) > 0 && set[0] == '^'
	if negated {
		set = set[1:]
	}
	for {
		switch {
		case len(set) == 0: // never closed: it ends with the pattern
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

// isLiteral: pattern matches only itself.
func isLiteral(pattern string) bool {
	for i := range len(pattern) {
		switch pattern[i] {
		case '*', '?', '[', '\\':
			return false
		}
	}
	return true
}
