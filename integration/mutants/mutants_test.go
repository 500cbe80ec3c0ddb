package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// All mutants of a small package meet its tests. The file of survivors says which of them
// the tests do not miss.
func TestMutantsOfAnExample(t *testing.T) {
	t.Chdir("../..")
	example := subject{dir: "integration/mutants/testdata/example", judges: []string{"integration/mutants/testdata/example"}, isPure: true}
	mutants, woven, err := generateAll([]subject{example})
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{scratch: t.TempDir(), suites: map[string]*suite{}, patience: 2 * time.Second}
	if err := j.prepare([]subject{example}, woven); err != nil {
		t.Fatal(err)
	}
	became := make([]string, len(mutants))
	_ = each(len(mutants), func(i int) error {
		f := j.try(mutants[i], example.judges)
		_, by, _ := strings.Cut(f.by, " ")
		if by == "" {
			by = "SURVIVES"
		}
		became[i] = by + ": " + strings.TrimPrefix(mutants[i].key(), example.dir+"/example.go ")
		return nil
	})
	slices.Sort(became)
	got := strings.Join(became, "\n") + "\n"
	want, err := os.ReadFile("integration/mutants/testdata/example.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A rule whose comment stands in a wrong place would have no mutant.
func TestRulesStandAboveWhatCanBeLeftOut(t *testing.T) {
	t.Chdir("../..")
	_, _, err := generateAll([]subject{{dir: "integration/mutants/testdata/misplaced"}})
	if err == nil || !strings.Contains(err.Error(), "misplaced.go: a comment") {
		t.Error(err)
	}
}

func TestSurvivorsHaveReasons(t *testing.T) {
	for _, c := range []struct{ text, wrong string }{
		{"# It only saves time.\n# Nothing else.\na/b.go F: never: x\na/b.go F: always: x\n\n# Another.\na/c.go G: dropped: y\n", ""},
		{"a/b.go F: never: x\n", "has no reason"},
		{"# It only saves time.\na/b.go F: never: x\n\na/b.go F: always: x\n", "has no reason"},
		{"# One.\na/b.go F: never: x\n# Two.\na/b.go F: always: x\n", "an empty line must stand before"},
		{"# One.\na/b.go F: never: x\na/b.go F: never: x\n", "stands here twice"},
	} {
		accepted, err := parseSurvivors(c.text)
		if c.wrong == "" && (err != nil || accepted["a/b.go F: always: x"] != "It only saves time. Nothing else." || accepted["a/c.go G: dropped: y"] != "Another.") {
			t.Errorf("%q: %v %v", c.text, accepted, err)
		}
		if c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%q: got %v, want %q", c.text, err, c.wrong)
		}
	}
	t.Chdir("../..")
	if accepted, err := readSurvivors(); err != nil || len(accepted) == 0 {
		t.Errorf("%d accepted survivors, %v", len(accepted), err)
	}
}

// What was tried is forgotten as soon as a source or a test of the package changes.
func TestWhatChangedIsTriedAgain(t *testing.T) {
	t.Chdir(t.TempDir())
	s := subject{dir: "room"}
	var sums []string
	for _, change := range []struct{ path, text string }{
		{"room/room.go", "package room"},
		{"room/room_test.go", "package room"},
		{"room/testdata/cases.txt", "one"},
		{"room/testdata/cases.txt", "two"},
		{"room/room.go", "package room // changed"},
	} {
		if err := os.MkdirAll("room/testdata", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(change.path, []byte(change.text), 0o600); err != nil {
			t.Fatal(err)
		}
		sum, err := sumOf(s)
		if err != nil || slices.Contains(sums, sum) {
			t.Errorf("after %v: %s, %v", change, sum, err)
		}
		sums = append(sums, sum)
	}
	if err := os.MkdirAll("room/below", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("room/below/below.go", []byte("package below"), 0o600); err != nil {
		t.Fatal(err)
	}
	if sum, err := sumOf(s); err != nil || sum != sums[len(sums)-1] {
		t.Errorf("a package below is another subject: %s, %v", sum, err)
	}
}
