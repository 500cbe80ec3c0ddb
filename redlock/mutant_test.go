package redlock

import (
	"context"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/layer"
)

// A mutant is the code without one rule. If all tests pass without a rule, nothing tests
// it. So each mutant must be caught by the timeline test with the rule's name. If a
// simulated world of faults is known to end with two holders without the rule, the
// simulation with those seeds must catch it, too.
type mutant struct {
	rule     string
	edits    []edit
	caughtBy string // a test of this package, or of one below: "quorum/TestAcquire"
	seeds    string // only with a test here

	// The roster's model must catch a mutant of the roster, too. world goes wrong without
	// the rule. If there is no such world, unmodelled says why.
	world      uint64
	unmodelled string
}

// An edit replaces a text that must occur exactly once. So a mutant that no longer fits
// the code fails, and does not pass without a test. The text is part of one function, and
// the changed part is in that function's body. The file is in this package or in one
// below: "quorum/tally.go".
type edit struct{ file, old, new string }

func TestMutantsAreCaught(t *testing.T) {
	layer.Only(t, layer.Long, "takes long")
	var chosen []mutant // those that -run asks for; only these are built
	var binaries map[string]string
	for _, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			n := len(chosen)
			chosen = append(chosen, m)
			t.Parallel() // it goes on when this test has built all
			if wrong := m.missed(t.Context(), binaries, n); wrong != "" {
				t.Error(wrong)
			}
			if m.world != 0 {
				m.wantWrongWorld(t, binaries[rosterPackage], n)
			}
		})
	}
	if len(chosen) == 0 { // or for nothing but what all tests must pass
		chosen = mutants
	}
	packages, unchanged := packagesThatCatch(chosen), leavesNothingOut(chosen)
	binaries = buildMutants(t, append(slices.Clone(chosen), unchanged), packages)
	t.Run(unchanged.rule, func(t *testing.T) {
		for _, p := range packages {
			unchanged := unchanged
			unchanged.caughtBy, unchanged.seeds = testsThatCatch(chosen, p)
			t.Run("in "+filepath.Join("redlock", p), func(t *testing.T) {
				t.Parallel()
				if wrong := unchanged.missed(t.Context(), binaries, len(chosen)); !strings.HasPrefix(wrong, nobodyMisses) {
					t.Errorf("this mutant should not be caught, and here it was, or its tests did not run: %s", wrong)
				}
			})
		}
		for _, m := range chosen {
			if m.world != 0 && goesWrong(t.Context(), binaries[rosterPackage], len(chosen), theModel, "-model.seed", m.world) {
				t.Errorf("world %d of the roster's model goes wrong with all rules", m.world)
			}
		}
	})
}

const (
	rosterPackage = "roster/"
	// theModel is the roster's test that catches mutants by their worlds alone.
	theModel = "TestModel"
	// modelSearch is the number of the model's steps to search for another world that goes
	// wrong, if the known one no longer does after a change to the roster.
	modelSearch = 3_000_000
)

// packagesOfTheModel are the roster and what it is made of.
var packagesOfTheModel = []string{rosterPackage, "marker/", "members/", "timing/"}

// wantWrongWorld fails the test if the roster's model does not catch the mutant.
func (m mutant) wantWrongWorld(t *testing.T, binary string, n int) {
	t.Helper()
	if !goesWrong(t.Context(), binary, n, theModel, "-model.seed", m.world) &&
		// The second test runs the worlds in which the number of masters changes.
		!goesWrong(t.Context(), binary, n, theModel+"(|OfAnotherNumber)", "-model.steps", modelSearch) {
		t.Errorf("world %d of the roster's model does not go wrong any more without the rule, nor do others in %d steps; search with -model.steps, and if none is found in 10^8, delete the rule or say why", m.world, modelSearch)
	}
}

// goesWrong tells whether a world of the model goes wrong with mutant n.
func goesWrong(ctx context.Context, binary string, n int, test, flag string, value uint64) bool {
	c := exec.CommandContext(ctx, binary, "-mutant", strconv.Itoa(n), "-test.run", "^"+test+"$", flag, strconv.FormatUint(value, 10))
	output, err := c.CombinedOutput()
	return err != nil && strings.Contains(string(output), "--- FAIL: "+theModel)
}

// The roster's model catches each mutant of the roster, or the mutant says why not.
func TestTheModelMissesRulesOfTheRoster(t *testing.T) {
	for _, m := range mutants {
		ofRoster := slices.ContainsFunc(m.edits, func(e edit) bool {
			dir, _ := path.Split(e.file)
			return slices.Contains(packagesOfTheModel, dir)
		})
		if said := m.world != 0 || m.unmodelled != ""; said != ofRoster || m.world != 0 && m.unmodelled != "" {
			t.Errorf("%s: a rule of the roster has a world of its model that misses it, or a reason why there is none, and no other rule has", m.rule)
		}
	}
}

// This test quickly checks that all mutants still fit the code.
func TestMutantsFit(t *testing.T) { mutate(t, mutants) }

// packagesThatCatch returns the packages whose tests catch mutants: directories that end
// in a slash, or "" for this one.
func packagesThatCatch(mutants []mutant) []string {
	var packages []string
	for _, m := range mutants {
		dir, _ := path.Split(m.caughtBy)
		packages = append(packages, dir)
		if m.world != 0 {
			packages = append(packages, rosterPackage)
		}
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// testsThatCatch returns the tests of one package that catch mutants.
func testsThatCatch(mutants []mutant, dir string) (caughtBy, seeds string) {
	var tests, worlds []string
	for _, m := range mutants {
		in, test := path.Split(m.caughtBy)
		if in != dir || test == theModel {
			continue
		}
		tests = append(tests, test)
		if m.seeds != "" {
			worlds = append(worlds, m.seeds)
		}
	}
	return dir + "(" + strings.Join(tests, "|") + ")", strings.Join(worlds, ",")
}

// leavesNothingOut is a mutant that changes nothing. All tests must pass with it, so a
// test that fails with another mutant fails because of its missing rule.
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

// missed runs mutant n against the tests that must catch it. It returns those that did
// not, or nothing if all did.
func (m mutant) missed(ctx context.Context, binaries map[string]string, n int) string {
	dir, test := path.Split(m.caughtBy)
	if test == theModel {
		return ""
	}
	run := "^" + test + "$"
	// The scheduler decides what is under way when a connection breaks.
	args := []string{"-mutant", strconv.Itoa(n), "-test.timeout=30m"}
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
