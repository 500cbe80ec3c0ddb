package layer

import (
	"os"
	"path/filepath"
	"testing"
)

// A test above its tier, and one that lacks a program, are skipped and say how to run them.
func TestSkippedTestsSayHowToRunThem(t *testing.T) {
	const run = "go test ./integration/layer -run '^TestSkippedTestsSayHowToRunThem$'\n"
	lacks := func(t *testing.T) { Program(t, "no-such-program", "no-such-package") }
	for name, row := range map[string]struct {
		tier, ci string
		test     func(t *testing.T)
		want     string // "": it runs
	}{
		"above":            {"", "", func(t *testing.T) { Only(t, Servers, "needs servers") }, "needs servers: REDLOCK_TEST=servers " + run},
		"above, in CI":     {"servers", "1", func(t *testing.T) { Only(t, Long, "takes long") }, "takes long: REDLOCK_TEST=long " + run},
		"its own":          {"servers", "", func(t *testing.T) { Only(t, Servers, "needs servers") }, ""},
		"below":            {"long", "", func(t *testing.T) { Only(t, Servers, "needs servers") }, ""},
		"a program":        {"servers", "", func(t *testing.T) { Program(t, "go", "golang") }, ""},
		"no program":       {"servers", "", lacks, "needs no-such-program (Debian package no-such-package): REDLOCK_TEST=servers " + run},
		"no program, Unit": {"", "1", lacks, "needs no-such-program (Debian package no-such-package): " + run},
	} {
		file := filepath.Join(t.TempDir(), "skipped")
		t.Setenv(variable, row.tier)
		t.Setenv("CI", row.ci)
		t.Setenv(skippedFile, file)
		ran := false
		t.Run(name, func(t *testing.T) {
			row.test(t)
			ran = true
		})
		if text, _ := os.ReadFile(file); string(text) != row.want || ran != (row.want == "") {
			t.Errorf("%s: it ran: %v, and the file has %q, not %q", name, ran, text, row.want)
		}
	}
}

// In CI a test that lacks a program fails.
func TestMissingProgramsFailInCI(t *testing.T) {
	t.Setenv(variable, Servers.String())
	t.Setenv("CI", "true")
	failed := &failure{TB: t}
	Program(failed, "no-such-program", "no-such-package")
	if !failed.fatal {
		t.Error("it does not fail")
	}
}

// failure notes Fatal and Skip, and goes on.
type failure struct {
	testing.TB
	fatal bool
}

func (f *failure) Fatal(...any) { f.fatal = true }
func (f *failure) Skip(...any)  {}

// A seed is fixed, except in the tier Long, and the variable chooses one.
func TestSeed(t *testing.T) {
	for _, tier := range []Layer{Unit, Servers} {
		t.Setenv(variable, tier.String())
		if seed := Seed(t); seed != 1 {
			t.Errorf("in the tier %q the seed is %d", tier, seed)
		}
	}
	t.Setenv(variable, Long.String())
	if one, other := Seed(t), Seed(t); one == other {
		t.Errorf("in the tier long the seed is %d again", one)
	}
	t.Setenv(seedVariable, "7")
	if seed := Seed(t); seed != 7 {
		t.Errorf("the seed is %d, not 7", seed)
	}
}
