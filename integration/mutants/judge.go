package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"redlock-proxy/integration/mutants/chosen"
)

// A suite is the tests of one package, built with all mutants.
type suite struct {
	dir    string // of the package
	binary string
	tests  []test // the fastest first
}

// A test is one function of a suite, or one of the scripts that a function plays.
type test struct {
	name    string
	took    time.Duration // alone
	used    time.Duration // of the processor
	reaches map[int]bool  // the mutants
}

// A judge runs tests against mutants.
type judge struct {
	scratch string
	suites  map[string]*suite // by directory
	// patience bounds a run of tests that use next to no processor time. A mutant that
	// keeps tests from ending is caught. 0: usualPatience.
	patience time.Duration
}

const usualPatience = 20 * time.Second

// mostWork is how much processor time a test may use that runs against mutants. Those that
// use more repeat what others ask once.
const mostWork = time.Second

// fewTests is how much processor time a test may use whose subtests are not asked one by one.
const fewTests = 100 * time.Millisecond

// bound bounds a run of tests that usually take so long.
func (j *judge) bound(usual time.Duration) time.Duration {
	return cmp.Or(j.patience, usualPatience) + 10*usual
}

// prepare builds the tests that judge these subjects, and learns what they reach.
func (j *judge) prepare(chosen []subject, woven map[string]string) error {
	var dirs []string
	for _, s := range chosen {
		dirs = append(dirs, s.judges...)
	}
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	binaries, err := build(woven, dirs, j.scratch)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		j.suites[dir] = &suite{dir: dir, binary: binaries[dir]}
		if err := j.learn(j.suites[dir]); err != nil {
			return err
		}
	}
	return nil
}

// learn runs each test alone, without a mutant, and notes which mutants it reaches.
func (j *judge) learn(s *suite) error {
	list, err := j.command(context.Background(), s, nil, "-test.list", ".").Output()
	if err != nil {
		return fmt.Errorf("listing the tests of %s: %w", s.dir, err)
	}
	var names []string
	for _, name := range strings.Fields(string(list)) {
		if strings.HasPrefix(name, "Test") && !slices.ContainsFunc(neverAsked, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			names = append(names, name)
		}
	}
	tests, parts, wrong := j.learnTests(s, names)
	if wrong == nil && len(parts) > 0 {
		var fine []test
		fine, _, wrong = j.learnTests(s, parts)
		tests = append(tests, fine...)
	}
	slices.SortFunc(tests, func(a, b test) int { return int(a.took - b.took) })
	s.tests = slices.DeleteFunc(tests, func(t test) bool { return t.used > mostWork && !slices.Contains(alwaysAsked, t.name) })
	return wrong
}

// learnTests learns what these tests reach. The parts are the subtests of tests that are too much work for a mutant.
func (j *judge) learnTests(s *suite, names []string) (tests []test, parts []string, wrong error) {
	tests = make([]test, len(names))
	partsOf := make([][]string, len(names))
	wrong = each(len(names), func(i int) (err error) {
		for range 3 { // on a busy machine a test may fail for once
			if tests[i], partsOf[i], err = j.learnTest(s, names[i], i); err == nil {
				return nil
			}
		}
		return err
	})
	for i, t := range tests {
		if t.used > fewTests && !slices.Contains(alwaysAsked, t.name) {
			parts = append(parts, partsOf[i]...)
		}
	}
	return tests, parts, wrong
}

// learnTest learns what a test reaches, and the names of its subtests that have none themselves.
func (j *judge) learnTest(s *suite, name string, number int) (test, []string, error) {
	reached := filepath.Join(j.scratch, fmt.Sprintf("%s-%d", strings.ReplaceAll(s.dir, "/", "-"), number))
	began := time.Now()
	command := j.command(context.Background(), s, []string{chosen.ReachedVariable + "=" + reached}, "-test.v", "-test.run", pattern(name), "-test.timeout=5m")
	output, err := command.CombinedOutput()
	if err != nil {
		return test{}, nil, fmt.Errorf("%s of %s fails without a mutant: %w\n%s", name, s.dir, err, output)
	}
	parts := subtests(string(output))
	t := test{name: name, took: time.Since(began), reaches: map[int]bool{}}
	t.used = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	text, err := os.ReadFile(reached)
	if errors.Is(err, os.ErrNotExist) {
		return t, parts, nil
	}
	for _, word := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return t, parts, err
		}
		t.reaches[n] = true
	}
	return t, parts, errors.Join(err, os.Remove(reached))
}

// subtests returns the subtests that a run has told of, without those that have subtests themselves.
func subtests(output string) []string {
	var names []string
	for line := range strings.Lines(output) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "=== RUN   ")
		if ok && strings.Contains(name, "/") {
			names = slices.DeleteFunc(names, func(parent string) bool { return strings.HasPrefix(name, parent+"/") })
			names = append(names, name)
		}
	}
	return names
}

// pattern is what the flag -test.run calls these tests.
func pattern(names ...string) string {
	var patterns []string
	for _, name := range names {
		var levels []string
		for level := range strings.SplitSeq(name, "/") {
			levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
		}
		patterns = append(patterns, strings.Join(levels, "/"))
	}
	return strings.Join(patterns, "|")
}

func (j *judge) command(ctx context.Context, s *suite, environment []string, args ...string) *exec.Cmd {
	// A mutant may ask for memory without end.
	command := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `ulimit -v 8388608; exec "$0" "$@"`, s.binary}, args...)...)
	command.Dir = s.dir
	// Without a PATH there are no servers: tests that start one skip, because it takes longer
	// than all others.
	command.Env = append(os.Environ(), append(environment, "PATH=")...)
	command.WaitDelay = time.Second
	return command
}

// A finding says what became of a mutant.
type finding struct {
	mutant mutant
	by     string // what caught it; "": nothing
	tests  int    // how many reached it
}

// try runs the tests that reach a mutant until one fails: the fastest first, in portions
// that take longer and longer.
func (j *judge) try(m mutant, dirs []string) finding {
	f := finding{mutant: m}
	for _, dir := range dirs {
		var portion []string
		var takes time.Duration
		most := 200 * time.Millisecond
		s := j.suites[dir]
		for i, t := range s.tests {
			if t.reaches[m.number] {
				portion, takes = append(portion, t.name), takes+t.took
				f.tests++
			}
			if len(portion) == 0 || takes < most && i < len(s.tests)-1 {
				continue
			}
			if caught := j.catches(s, m, portion, takes); caught != "" {
				f.by = dir + " " + caught
				return f
			}
			portion, takes, most = nil, 0, 4*most
		}
	}
	return f
}

// catches returns the test that fails with the mutant.
func (j *judge) catches(s *suite, m mutant, names []string, takes time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), j.bound(takes)+10*time.Second)
	defer cancel()
	environment := []string{chosen.Variable + "=" + strconv.Itoa(m.number)}
	output, err := j.command(ctx, s, environment, "-test.run", pattern(names...), "-test.failfast", "-test.timeout", j.bound(takes).String()).CombinedOutput()
	if err == nil {
		return ""
	}
	if _, behind, ok := bytes.Cut(output, []byte("--- FAIL: ")); ok {
		name, _, _ := strings.Cut(string(behind), " ")
		return name
	}
	if bytes.Contains(output, []byte("panic: test timed out")) || ctx.Err() != nil {
		return "(they do not end)"
	}
	return "(the process dies)"
}

// each calls a function with 0 to n-1, three at a time for each processor: tests wait, too.
func each(n int, do func(int) error) error {
	var mu sync.Mutex
	var wrong []error
	var all sync.WaitGroup
	next := make(chan int)
	for range 3 * runtime.NumCPU() {
		all.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					mu.Lock()
					wrong = append(wrong, err)
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
	return errors.Join(wrong...)
}
