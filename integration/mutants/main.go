// Mutants looks for rules that no test misses. It changes the code of the packages that
// decide about locks in one place at a time: a condition, a part of one, a bound, a term
// of a sum, a call, an assignment. In a package that does I/O a call or an assignment is
// dropped only below a comment that begins "rule:" and names the rule, and so is a value
// anywhere. Each such mutant must make a test fail, or stand in a file of survivors/ with the
// reason why it need not.
//
//	go run ./integration/mutants -changed          packages that changed since they were tried
//	go run ./integration/mutants -all              all packages, and the accepted survivors, too
//	go run ./integration/mutants redlock/quorum    this package
//	go run ./integration/mutants -only 'Tally.Acquire: never' redlock/quorum
//	go run ./integration/mutants -write redlock/quorum    notes in tried.txt that it was tried
//
// It runs in the root of the repository. All mutants are compiled into one test binary for
// each package (package chosen), and an environment variable picks one. First each test
// runs alone and tells which mutants it reaches; the scripts of a test that plays many count as
// tests. Then each mutant meets the tests that reach it, the fastest first, until one fails.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	all         = flag.Bool("all", false, "try all packages, and the accepted survivors, too")
	onlyChanged = flag.Bool("changed", false, "try the packages that have changed since tried.txt was written")
	write       = flag.Bool("write", false, "note in tried.txt which of these packages have no mutant that survives")
	only        = flag.String("only", "", "try only mutants whose key contains this `text`, also accepted ones")
	list        = flag.Bool("list", false, "print the mutants and try none")
	tries       = flag.Int("tries", 3, "how often a mutant is tried before it has survived: the scheduler may decide which test fails")
	verbose     = flag.Bool("v", false, "print what became of each mutant")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	chosen, err := chooseSubjects()
	if err != nil || len(chosen) == 0 {
		return err
	}
	accepted, err := readSurvivors()
	if err != nil {
		return err
	}
	mutants, woven, err := generateAll(chosen)
	if err != nil {
		return err
	}
	if *list {
		for _, m := range mutants {
			fmt.Println(m.key())
		}
		return nil
	}
	if err := findStale(chosen, mutants, accepted); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	began := time.Now()
	j := &judge{scratch: scratch, suites: map[string]*suite{}}
	if err := j.prepare(chosen, woven); err != nil {
		return err
	}
	fmt.Printf("%d mutants of %d packages, built and reached in %v\n", len(mutants), len(chosen), time.Since(began).Round(time.Second))
	survivors := tryAll(j, chosen, mutants, accepted)
	fmt.Printf("tried in %v\n", time.Since(began).Round(time.Second))
	if *write && *only == "" {
		caught := slices.DeleteFunc(slices.Clone(chosen), func(s subject) bool {
			return slices.ContainsFunc(survivors, func(key string) bool {
				file, _, _ := strings.Cut(key, " ")
				return path.Dir(file) == s.dir
			})
		})
		if err := writeTried(caught); err != nil {
			return err
		}
	}
	if len(survivors) > 0 {
		fmt.Println(strings.Join(survivors, "\n"))
		return fmt.Errorf("%d mutants survive: no test misses these rules. Write a test that does, or delete the code, or add the line to a file in %s with a reason", len(survivors), survivorsPath)
	}
	return nil
}

func chooseSubjects() ([]subject, error) {
	switch {
	case *all:
		return subjects, nil
	case *onlyChanged:
		chosen, err := changed()
		if err == nil && len(chosen) == 0 {
			fmt.Println("no package has changed since its mutants were tried")
		}
		return chosen, err
	case flag.NArg() == 0:
		return nil, errors.New("name packages, or give -changed or -all")
	}
	return find(flag.Args())
}

// generateAll returns the mutants of these subjects, and the files with all of them.
func generateAll(chosen []subject) (mutants []mutant, woven map[string]string, err error) {
	var dirs []string
	for _, s := range chosen {
		dirs = append(dirs, s.dir)
	}
	sources, err := readSources(dirs)
	if err != nil {
		return nil, nil, err
	}
	woven = map[string]string{}
	for i, source := range sources {
		for _, f := range source.files {
			text, err := generate(chosen[i], source, f, &mutants)
			if err != nil {
				return nil, nil, err
			}
			if text != "" {
				woven[f.path] = text
			}
		}
		for _, function := range chosen[i].functions {
			if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.dir() == chosen[i].dir && m.in == function }) {
				return nil, nil, fmt.Errorf("subjects.go: %s has no mutants in a function %s", chosen[i].dir, function)
			}
		}
	}
	return mutants, woven, nil
}

// findStale finds accepted survivors that are no mutants any more.
func findStale(chosen []subject, mutants []mutant, accepted map[string]string) error {
	exists := map[string]bool{}
	for _, m := range mutants {
		exists[m.key()] = true
	}
	var stale []string
	for key := range accepted {
		path, _, _ := strings.Cut(key, " ")
		dir := path[:max(0, strings.LastIndexByte(path, '/'))]
		if !exists[key] && slices.ContainsFunc(chosen, func(s subject) bool { return s.dir == dir }) {
			stale = append(stale, key)
		}
	}
	slices.Sort(stale)
	if len(stale) > 0 {
		return fmt.Errorf("these lines in %s fit no code any more. Delete them:\n%s", survivorsPath, strings.Join(stale, "\n"))
	}
	return nil
}

// tryAll tries the mutants and prints what became of them. It returns the keys of those
// that survive and are not accepted.
func tryAll(j *judge, chosen []subject, mutants []mutant, accepted map[string]string) (survivors []string) {
	type count struct{ tried, caught, accepted int }
	counts := map[string]*count{}
	judges := map[string][]string{}
	for _, s := range chosen {
		counts[s.dir], judges[s.dir] = &count{}, s.judges
	}
	var mu sync.Mutex
	_ = each(len(mutants), func(i int) error {
		m := mutants[i]
		dir := m.dir()
		isAccepted := accepted[m.key()] != ""
		if *only != "" && !strings.Contains(m.key(), *only) || *only == "" && isAccepted && !*all {
			mu.Lock()
			defer mu.Unlock()
			if isAccepted {
				counts[dir].accepted++
			}
			return nil
		}
		var f finding
		for try := 0; try < *tries && f.by == "" && !(isAccepted && try > 0); try++ {
			f = j.try(m, judges[dir])
		}
		mu.Lock()
		defer mu.Unlock()
		c := counts[dir]
		c.tried++
		switch {
		case f.by != "" && isAccepted:
			c.caught++
			fmt.Printf("caught by %s, and accepted as a survivor: if it is caught each time, delete its line: %s\n", f.by, m.key())
		case f.by != "":
			c.caught++
		case isAccepted:
			c.accepted++
		default:
			survivors = append(survivors, m.key())
		}
		if *verbose {
			fmt.Printf("%s\tby %q\tof %d tests\n", m.key(), f.by, f.tests)
		}
		return nil
	})
	for _, s := range chosen {
		c := counts[s.dir]
		fmt.Printf("%-16s %5d tried, %5d caught, %4d accepted\n", s.dir, c.tried, c.caught, c.accepted)
	}
	slices.Sort(survivors)
	return survivors
}
