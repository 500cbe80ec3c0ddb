package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// scenario is a row of commands that belong together, sent in order on one
// connection. "{n}" in a word becomes something that no other run uses, so
// scenarios never meet on a key.
type scenario struct {
	name  string
	steps []step
}

// step is one command and the rule its replies are compared by.
type step struct {
	args    []string
	compare comparison
}

// by says that the replies cannot be the same bytes and what holds instead.
func (s step) by(c comparison) step {
	s.compare = c
	return s
}

func cmd(args ...string) step { return step{args: args} }

// line is cmd of the words of a line; "..." keeps a word with blanks together.
func line(text string) step { return step{args: words(text)} }

func eval(text string, keys []string, argv ...string) step {
	return cmd(slices.Concat([]string{"EVAL", text, strconv.Itoa(len(keys))}, keys, argv)...)
}

func evalsha(text string, keys []string, argv ...string) step {
	return cmd(slices.Concat([]string{"EVALSHA", sha1Hex(text), strconv.Itoa(len(keys))}, keys, argv)...)
}

// words splits at blanks. A word in double quotes may hold blanks.
func words(text string) []string {
	var out []string
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var word string
		if rest, quoted := strings.CutPrefix(text, `"`); quoted {
			word, text, _ = strings.Cut(rest, `"`)
		} else {
			word, text, _ = strings.Cut(text, " ")
		}
		out = append(out, word)
	}
	return out
}

// numbered returns the scenario with "{n}" replaced.
func (s scenario) numbered(n string) scenario {
	numbered := scenario{name: s.name}
	for _, each := range s.steps {
		args := make([]string, len(each.args))
		for i, arg := range each.args {
			args[i] = fill(arg, n)
		}
		numbered.steps = append(numbered.steps, step{args, each.compare})
	}
	return numbered
}

// declined tells whether the scenario has a step that only the proxy declines.
func (s scenario) declined() bool {
	return slices.ContainsFunc(s.steps, func(each step) bool { return each.compare == declined })
}

func fill(word, n string) string { return strings.ReplaceAll(word, "{n}", n) }

// keys are the words that numbered makes unique: by convention, and only by
// it, scenarios mark exactly their keys so.
func (s scenario) keys(n string) []string {
	var keys []string
	for _, each := range s.steps {
		for _, arg := range each.args {
			key := fill(arg, n)
			if key != arg && !strings.ContainsAny(arg, " \n*") && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// lockKey says of a key what lockRules says.
func lockKey(key string) bool {
	return strings.HasPrefix(key, "lock:") || strings.HasSuffix(key, "_LOCK") ||
		strings.HasPrefix(key, "lock-signal:") || strings.Contains(key, "redisson_") ||
		strings.HasPrefix(key, "{lock:")
}

// mismatch is a step that two servers answered differently.
type mismatch struct {
	scenario       string
	step           int
	rule           comparison
	sent           []byte
	plain, proxied []byte
}

func (m *mismatch) Error() string {
	return fmt.Sprintf("scenario %q, step %d, want %s\n    sent: %q\n   plain: %q\n proxied: %q",
		m.scenario, m.step, m.rule, m.sent, m.plain, m.proxied)
}

// run sends each step to both servers and compares their answers. It stops
// at the first difference, since what follows would only repeat it.
func (s scenario) run(plain, proxied *wire) error {
	for i, each := range s.steps {
		want, err := plain.do(each.args...)
		if err != nil {
			return fmt.Errorf("scenario %q, step %d: plain Redis: %w", s.name, i+1, err)
		}
		got, err := proxied.do(each.args...)
		if err != nil {
			return fmt.Errorf("scenario %q, step %d %q: proxy: %w after %q, plain Redis answers %q",
				s.name, i+1, each.args, err, got, want)
		}
		rule := each.compare
		if rule == "" {
			rule = exact
		}
		if !rule.equal(want, got) {
			return &mismatch{s.name, i + 1, rule, encode(each.args...), want, got}
		}
	}
	return nil
}
