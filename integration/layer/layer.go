// Package layer chooses which tests of the repository run. The environment variable
// REDLOCK_TEST decides:
//
//	(unset)   unit tests, which need nothing but Go, and redis-server if it is installed
//	servers   also tests over real servers, with clients in PHP, Java, Python and Go
//	all       also every library, Valkey, and tests that take long
//
// Tests outside the chosen layer are skipped, so that they never count as passed. One line
// per package says what was left out and how to run it. In the layers servers and all
// nothing may be missing: a missing program fails the tests.
package layer

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
)

// A Layer includes the tests of the layers before it.
type Layer int

const (
	Unit Layer = iota
	Servers
	All
)

const variable = "REDLOCK_TEST"

func (l Layer) String() string { return [...]string{"", "servers", "all"}[l] }

// Chosen returns the layer that REDLOCK_TEST names. It panics if there is no such layer.
func Chosen() Layer {
	for _, l := range []Layer{Unit, Servers, All} {
		if os.Getenv(variable) == l.String() {
			return l
		}
	}
	panic(fmt.Sprintf("%s=%s: it must be unset, servers or all", variable, os.Getenv(variable)))
}

// Long skips a test that takes long, unless the layer is All.
func Long(t testing.TB) {
	t.Helper()
	OnlyAll(t, "tests that take long")
}

// OnlyAll skips a test unless the layer is All.
func OnlyAll(t testing.TB, what string) {
	t.Helper()
	if Chosen() < All {
		LeaveOut(what, All)
		t.Skipf("%s run with %s=%s", what, variable, All)
	}
}

// Program returns the path of a program. If it is missing, the test is skipped in the
// layer Unit and fails in the others.
func Program(t testing.TB, name string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	switch {
	case err == nil:
	case Chosen() == Unit:
		LeaveOut("tests that need "+name, Servers)
		t.Skip(err)
	default:
		t.Fatal(err)
	}
	return program
}

var said sync.Map

// LeaveOut prints, once per process, which tests of this package do not run, and in which
// layer they do.
func LeaveOut(what string, in Layer) {
	if _, before := said.LoadOrStore(what, true); before {
		return
	}
	of := "."
	if info, ok := debug.ReadBuildInfo(); ok {
		_, below, _ := strings.Cut(strings.TrimSuffix(info.Path, ".test"), "/")
		of = "./" + path.Clean(below)
	}
	line := fmt.Sprintf("left out: %s; %s=%s go test %s\n", what, variable, in, of)
	fmt.Fprint(os.Stderr, line)
	tellGo(line)
}

// tellGo writes to the terminal or pipe of the go command that runs this test. The go
// command itself does not show the output of a package whose tests pass.
func tellGo(line string) {
	if !flag.Parsed() {
		flag.Parse()
	}
	process := fmt.Sprintf("/proc/%d/", os.Getppid())
	if name, err := os.ReadFile(process + "comm"); err != nil || strings.TrimSpace(string(name)) != "go" || testing.Verbose() {
		return
	}
	out, err := os.Stat(filepath.Join(process, "fd/2"))
	if err != nil || out.Mode()&(os.ModeCharDevice|os.ModeNamedPipe) == 0 {
		return
	}
	if own, err := os.Stderr.Stat(); err != nil || os.SameFile(own, out) {
		return
	}
	if stderr, err := os.OpenFile(filepath.Join(process, "fd/2"), os.O_WRONLY, 0); err == nil {
		defer stderr.Close()
		_, _ = stderr.WriteString(line)
	}
}
