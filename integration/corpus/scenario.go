package corpus

import (
	"fmt"
	"slices"
	"strings"

	"redlock-proxy/integration/rig"
)

// Scenario is a sequence of commands, sent in order on one connection. "{n}" in a word
// becomes a text that no other run uses, so two scenarios never share a key.
type Scenario struct {
	Name  string
	steps []step
}

// step is one command and the rule for comparing its replies.
type step struct {
	args    []string
	compare comparison
}

// by returns the step with another rule than Exact.
func (s step) by(c comparison) step {
	s.compare = c
	return s
}

func cmd(args ...string) step { return step{args: args} }

// line makes a step from a line, which Words splits.
func line(text string) step { return step{args: Words(text)} }

// numbered returns the scenario with "{n}" replaced by n.
func (s Scenario) numbered(n string) Scenario {
	numbered := Scenario{Name: s.Name}
	for _, each := range s.steps {
		args := make([]string, len(each.args))
		for i, arg := range each.args {
			args[i] = fill(arg, n)
		}
		numbered.steps = append(numbered.steps, step{args, each.compare})
	}
	return numbered
}

// Declined tells whether the scenario has a step that only the proxy declines.
func (s Scenario) Declined() bool {
	return slices.ContainsFunc(s.steps, func(each step) bool { return each.compare == declined })
}

func fill(word, n string) string { return strings.ReplaceAll(word, "{n}", n) }

// keys returns the words that contain "{n}", with n filled in. By convention these are
// exactly the keys of a scenario. Nothing checks that.
func (s Scenario) keys(n string) []string {
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

// mismatch is a step to which two servers gave different replies.
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

// run sends each step to both servers and compares their replies. It stops at the first
// difference, because later ones would only follow from it.
func (s Scenario) run(plain, proxied *rig.Wire) error {
	for i, each := range s.steps {
		want, err := plain.Do(each.args...)
		if err != nil {
			return fmt.Errorf("scenario %q, step %d: plain Redis: %w", s.Name, i+1, err)
		}
		got, err := proxied.Do(each.args...)
		if err != nil {
			return fmt.Errorf("scenario %q, step %d %q: proxy: %w after %q, plain Redis answers %q",
				s.Name, i+1, each.args, err, got, want)
		}
		rule := each.compare
		if rule == "" {
			rule = Exact
		}
		if !rule.Equal(want, got) {
			return &mismatch{s.Name, i + 1, rule, rig.Encode(each.args...), want, got}
		}
	}
	return nil
}

// OnUpstream returns the scenario on keys that are no lock keys.
func (s Scenario) OnUpstream() Scenario {
	moved := Scenario{Name: "upstream: " + s.Name}
	for _, each := range s.steps {
		args := slices.Clone(each.args)
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "lock:", "plain:")
		}
		moved.steps = append(moved.steps, step{args: args, compare: each.compare})
	}
	return moved
}
