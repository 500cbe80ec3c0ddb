// Package layer chooses which tests of the repository run. There are three tiers, and the
// environment variable REDLOCK_TEST says which:
//
//	(unset)   unit tests: they need only Go, and use redis-server if it is installed
//	servers   also tests over real servers and clients: integration/test.sh
//	long      also what takes hours: integration/test.sh long
//
// A test that does not run is skipped, with a text that says what it needs and how to run
// it. A missing program skips the tests that need it. Where the variable CI is set, it fails
// them instead, but not in the tier Unit.
//
// The go command shows the text of a skipped test only with -v. So the text is also added to
// the file that REDLOCK_SKIPPED names. test.sh sets the variable and shows the file.
package layer

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// A Layer is a tier. It includes the tests of the tiers before it.
type Layer int

const (
	Unit Layer = iota
	Servers
	Long
)

// RoomTest is the test that stands for all of its package, where they cannot run.
const RoomTest = "TestNeeds"

const (
	variable     = "REDLOCK_TEST"
	skippedFile  = "REDLOCK_SKIPPED"
	seedVariable = "REDLOCK_SEED"
)

func (l Layer) String() string { return [...]string{"", "servers", "long"}[l] }

// Chosen returns the tier that REDLOCK_TEST names. It panics if there is no such tier.
func Chosen() Layer {
	for _, l := range []Layer{Unit, Servers, Long} {
		if os.Getenv(variable) == l.String() {
			return l
		}
	}
	panic(fmt.Sprintf("%s=%s: it must be unset, servers or long", variable, os.Getenv(variable)))
}

// Only skips a test unless the tier is this one or a later one. The text what says what does
// not run: "tests over real servers".
func Only(t testing.TB, in Layer, what string) {
	t.Helper()
	if Chosen() < in {
		skip(t, what, in)
	}
}

// Program returns the path of a program. If it is missing, see Missing.
func Program(t testing.TB, name, debian string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		Missing(t, fmt.Sprintf("%s (Debian package %s)", name, debian))
	}
	return program
}

// Missing skips a test that needs something that this machine does not have. It fails the test
// instead where CI is set, except in the tier Unit.
func Missing(t testing.TB, what string) {
	t.Helper()
	text := "needs " + what
	if Chosen() > Unit && os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	skip(t, text, Chosen())
}

// skip skips a test and says how to run it.
func skip(t testing.TB, why string, in Layer) {
	t.Helper()
	text := why + ": " + command(t, in)
	if file := os.Getenv(skippedFile); file != "" {
		if err := add(file, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	t.Skip(text)
}

// Seed returns the seed of a test that draws random numbers. It is 1, so that an old fault
// never strikes somebody else's change. In the tier Long it is another one each time. The
// variable REDLOCK_SEED chooses one. Seed prints the command that repeats the test with this
// seed, and with these settings, which are names of variables.
func Seed(t testing.TB, settings ...string) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	} else if Chosen() == Long {
		seed = rand.Uint64N(1_000_000_000)
	}
	repeat := fmt.Sprintf("%s=%d", seedVariable, seed)
	for _, name := range settings {
		if value := os.Getenv(name); value != "" {
			repeat += fmt.Sprintf(" %s=%s", name, value)
		}
	}
	t.Logf("repeat with: %s %s", repeat, command(t, Chosen()))
	return seed
}

// command returns the command that runs a test in a tier.
func command(t testing.TB, in Layer) string {
	command := "go test " + folder()
	if name, _, _ := strings.Cut(t.Name(), "/"); name != RoomTest {
		command += fmt.Sprintf(" -run '^%s$'", name)
	}
	if in != Unit {
		command = fmt.Sprintf("%s=%s %s", variable, in, command)
	}
	return command
}

// folder returns the folder of the package that is tested, as the go command wants it.
func folder() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "."
	}
	_, below, _ := strings.Cut(strings.TrimSuffix(info.Path, ".test"), "/")
	return "./" + path.Clean(below)
}

// add appends a line to a file to which other processes append, too.
func add(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		return err
	}
	return f.Close()
}
