package redlock

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
// which no longer fits the code fails instead of testing nothing.
type edit struct{ file, old, new string }

func TestMutantsAreCaught(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			run := "^" + m.caughtBy + "$"
			// What is under way when a connection breaks is the scheduler's choice.
			repeat := []string{"-count=20", "-failfast"}
			if m.seeds != "" {
				run += "|^TestSimulation$"
				repeat = []string{"-count=1"}
			}
			args := append([]string{"test", "-vet=off", "-timeout=120s", "-overlay", m.overlay(t)}, repeat...)
			args = append(args, "-run", run, ".", "-sim.seed", m.seeds)
			output, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
			if err == nil {
				t.Fatalf("nothing misses this rule:\n%s", output)
			}
			if !strings.Contains(string(output), "--- FAIL: "+m.caughtBy+" ") {
				t.Errorf("%s did not catch it:\n%.2000s", m.caughtBy, output)
			}
			if m.seeds != "" && !strings.Contains(string(output), "two holders of lock:") {
				t.Errorf("the simulation found no two holders with seeds %s:\n%.2000s", m.seeds, output)
			}
		})
	}
}

// overlay writes the mutated files and tells the go command of them.
func (m mutant) overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	for _, e := range m.edits {
		source, err := filepath.Abs(e.file)
		if err != nil {
			t.Fatal(err)
		}
		if replaced[source] == "" {
			replaced[source] = source
		}
		text, err := os.ReadFile(replaced[source])
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			t.Fatalf("%s has this %d times instead of once: %s", e.file, n, e.old)
		}
		replaced[source] = filepath.Join(dir, e.file)
		if err := os.WriteFile(replaced[source], []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
