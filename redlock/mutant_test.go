package redlock

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A mutant is the code with one rule left out. A rule that no test misses is
// not tested, so each mutant has to be caught: by the timeline test that
// carries the rule's name and, where a simulated world of faults is known to
// end with two holders without it, by the simulation with those seeds.
type mutant struct {
	rule     string
	edits    []edit
	caughtBy string
	seeds    string
}

// An edit replaces a text that must be there exactly once, so that a mutant
// which no longer fits the code fails instead of testing nothing. The text is
// part of one function, and what it replaces is in that function's body.
type edit struct{ file, old, new string }

func TestMutantsAreCaught(t *testing.T) {
	unchanged := leavesNothingOut(mutants)
	binary := buildMutants(t, append(slices.Clone(mutants), unchanged))
	for n, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			if wrong := m.missed(t.Context(), binary, n); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	t.Run(unchanged.rule, func(t *testing.T) {
		if wrong := unchanged.missed(t.Context(), binary, len(mutants)); !strings.HasPrefix(wrong, nobodyMisses) {
			t.Errorf("this mutant should not be caught, and here it was, or its tests did not run: %s", wrong)
		}
	})
}

// leavesNothingOut is a mutant in which all that the others edit stays as it is.
// All their tests pass it, so what fails in the others is for what they leave out.
func leavesNothingOut(mutants []mutant) mutant {
	var edits []edit
	var tests, seeds []string
	for _, m := range mutants {
		for _, e := range m.edits {
			edits = append(edits, edit{e.file, e.old, e.old})
		}
		tests = append(tests, m.caughtBy)
		if m.seeds != "" {
			seeds = append(seeds, m.seeds)
		}
	}
	return mutant{"no rule is left out", edits, "(" + strings.Join(tests, "|") + ")", strings.Join(seeds, ",")}
}

const nobodyMisses = "nothing misses this rule"

// missed runs mutant n of a binary against the tests that are to catch it, and
// tells what did not; nothing if all did.
func (m mutant) missed(ctx context.Context, binary string, n int) string {
	run := "^" + m.caughtBy + "$"
	// What is under way when a connection breaks is the scheduler's choice.
	repeat := []string{"-test.count=20", "-test.failfast"}
	if m.seeds != "" {
		run += "|^TestSimulation$"
		repeat = []string{"-test.count=1"}
	}
	args := append(repeat, "-test.run", run, "-test.timeout=120s", "-mutant", strconv.Itoa(n), "-sim.seed", m.seeds)
	output, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	switch {
	case err == nil:
		return nobodyMisses + ":\n" + string(output)
	case !strings.Contains(string(output), "--- FAIL: "+m.caughtBy+" "):
		return m.caughtBy + " did not catch it:\n" + string(output)
	case m.seeds != "" && !strings.Contains(string(output), "two holders of lock:"):
		return "the simulation found no two holders with seeds " + m.seeds + ":\n" + string(output)
	}
	return ""
}
