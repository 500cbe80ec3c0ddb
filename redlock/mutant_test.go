package redlock

import (
	"context"
	"os/exec"
	"path"
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
	caughtBy string // a test here, or one of a package below: "quorum/TestAcquire"
	seeds    string // only with a test here
}

// An edit replaces a text that must be there exactly once, so that a mutant
// which no longer fits the code fails instead of testing nothing. The text is
// part of one function, and what it replaces is in that function's body. The file
// is here or in a package below: "quorum/tally.go".
type edit struct{ file, old, new string }

func TestMutantsAreCaught(t *testing.T) {
	packages := packagesThatCatch(mutants)
	unchanged := leavesNothingOut(mutants)
	binaries := buildMutants(t, append(slices.Clone(mutants), unchanged), packages)
	for n, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			if wrong := m.missed(t.Context(), binaries, n); wrong != "" {
				t.Error(wrong)
			}
		})
	}
	t.Run(unchanged.rule, func(t *testing.T) {
		for _, p := range packages {
			unchanged := unchanged
			unchanged.caughtBy, unchanged.seeds = testsThatCatch(mutants, p)
			if wrong := unchanged.missed(t.Context(), binaries, len(mutants)); !strings.HasPrefix(wrong, nobodyMisses) {
				t.Errorf("this mutant should not be caught, and here it was, or its tests did not run: %s", wrong)
			}
		}
	})
}

// It takes no time to see whether all of them still fit the code.
func TestMutantsFit(t *testing.T) { mutate(t, mutants) }

// packagesThatCatch is where the tests are that catch mutants: directories with a
// slash behind them, "" for this one.
func packagesThatCatch(mutants []mutant) []string {
	var packages []string
	for _, m := range mutants {
		dir, _ := path.Split(m.caughtBy)
		packages = append(packages, dir)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// testsThatCatch is all that catches mutants in one package.
func testsThatCatch(mutants []mutant, dir string) (caughtBy, seeds string) {
	var tests, worlds []string
	for _, m := range mutants {
		in, test := path.Split(m.caughtBy)
		if in != dir {
			continue
		}
		tests = append(tests, test)
		if m.seeds != "" {
			worlds = append(worlds, m.seeds)
		}
	}
	return dir + "(" + strings.Join(tests, "|") + ")", strings.Join(worlds, ",")
}

// leavesNothingOut is a mutant in which all that the others edit stays as it is.
// All their tests pass it, so what fails in the others is for what they leave out.
func leavesNothingOut(mutants []mutant) mutant {
	var edits []edit
	for _, m := range mutants {
		for _, e := range m.edits {
			edits = append(edits, edit{e.file, e.old, e.old})
		}
	}
	return mutant{rule: "no rule is left out", edits: edits}
}

const nobodyMisses = "nothing misses this rule"

// missed runs mutant n against the tests that are to catch it, and tells what did
// not; nothing if all did.
func (m mutant) missed(ctx context.Context, binaries map[string]string, n int) string {
	dir, test := path.Split(m.caughtBy)
	run := "^" + test + "$"
	// What is under way when a connection breaks is the scheduler's choice.
	args := []string{"-mutant", strconv.Itoa(n), "-test.timeout=120s"}
	if m.seeds == "" {
		args = append(args, "-test.count=20", "-test.failfast")
	} else {
		run += "|^TestSimulation$"
		args = append(args, "-test.count=1", "-sim.seed", m.seeds)
	}
	c := exec.CommandContext(ctx, binaries[dir], append(args, "-test.run", run)...)
	c.Dir = "./" + dir
	output, err := c.CombinedOutput()
	switch {
	case err == nil:
		return nobodyMisses + ":\n" + string(output)
	case !strings.Contains(string(output), "--- FAIL: "+test+" "):
		return m.caughtBy + " did not catch it:\n" + string(output)
	case m.seeds != "" && !strings.Contains(string(output), "two holders of lock:"):
		return "the simulation found no two holders with seeds " + m.seeds + ":\n" + string(output)
	}
	return ""
}
