package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A subject is a package that decides about locks, so each of its rules must be missed by
// a test.
type subject struct {
	dir string
	// judges are the packages whose tests must miss a rule, in this order.
	judges []string
	// functions are those that decide, in a package that mostly does I/O. Empty: all.
	functions []string
	// Calls and assignments are dropped, too: the package computes values and does no I/O,
	// so each statement is a part of a rule.
	isPure bool
}

var subjects = []subject{
	{dir: "redlock/quorum", judges: []string{"redlock/quorum", "redlock"}, isPure: true},
	{dir: "redlock/timing", judges: []string{"redlock/timing", "redlock/roster"}},
	{dir: "redlock/marker", judges: []string{"redlock/marker", "redlock/roster"}, functions: []string{"Marker.Version", "Parse"}},
	{dir: "redlock/members", judges: []string{"redlock/members", "redlock/roster"}, isPure: true},
	{dir: "redlock/roster", judges: []string{"redlock/roster"}},
	{dir: "redlock/effect", judges: []string{"redlock/effect", "redlock"}, isPure: true},
	{dir: "redlock/lane", judges: []string{"redlock/lane", "redlock"}},
	{dir: "redlock/ballot", judges: []string{"redlock/ballot", "redlock"}},
	{dir: "redlock/run", judges: []string{"redlock/run", "redlock"}},
	{dir: "redlock/mend", judges: []string{"redlock/mend", "redlock"}},
	{dir: "redlock/heal", judges: []string{"redlock/heal", "redlock"}},
	{dir: "redlock/token", judges: []string{"redlock/token", "redlock"}},
	{dir: "redlock/stream", judges: []string{"redlock/stream", "redlock"}, functions: []string{
		"Debt.append", "Stream.Owe", "Stream.Send", "Stream.accepts", "Stream.answerBatch", "Stream.appendCheck", "Stream.batch",
		"Stream.end", "Stream.firstDebts", "Stream.flush", "Stream.keep", "Stream.mayCreate", "Stream.owed", "Stream.suspended", "Stream.takeOver",
	}},
	{dir: "redlock/master", judges: []string{"redlock/master", "redlock"}, functions: []string{
		"AppendMark", "Set.IsPrepared", "Set.Prepare", "clockWatch.compare", "clockWatch.observe", "database.Judge", "moment.since",
	}},
	{dir: "redlock/notify", judges: []string{"redlock/notify", "redlock"}, functions: []string{"Hub.decide", "Hub.lose", "Subscriber.want", "heard.begin", "heard.count", "heard.wait"}},
	{dir: "redlock/script", judges: []string{"redlock/script", "redlock"}, functions: []string{"Recognise", "trial.spares"}},
	{dir: "redlock", judges: []string{"redlock"}, functions: []string{
		"Locker.Acquire", "Locker.Extend", "Locker.acquireInTurn", "Locker.extendMissed", "Locker.extendOnce",
		"Locker.release", "Locker.releaseValue", "acquisition.Keep", "acquisition.askOnce", "acquisition.takeBack", "reading.goesOnAs",
		"looks.deletable",
	}},
	{dir: "proxy/lock", judges: []string{"proxy/lock", "proxy"}},
	{dir: "proxy/lease", judges: []string{"proxy/lease", "proxy"}},
}

var (
	// alwaysAsked are slow tests that find what no other finds.
	alwaysAsked = []string{"TestModel", "TestModelOfAnotherNumber"}
	// neverAsked are the beginnings of tests that wait for real servers, or that find in
	// minutes what others find at once.
	neverAsked = []string{"TestLive", "TestSimulation"}
)

// find returns the subjects of these directories.
func find(dirs []string) ([]subject, error) {
	var found []subject
	for _, dir := range dirs {
		dir = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(dir)), "./")
		i := slices.IndexFunc(subjects, func(s subject) bool { return s.dir == dir })
		if i < 0 {
			return nil, fmt.Errorf("%s has no mutants; subjects.go lists the packages that have", dir)
		}
		found = append(found, subjects[i])
	}
	return found, nil
}

// triedPath is the list of the subjects as they were when all their mutants were tried.
const triedPath = "integration/mutants/tried.txt"

// changed returns the subjects that are not as they were when their mutants were tried.
func changed() ([]subject, error) {
	tried, err := readTried()
	if err != nil {
		return nil, err
	}
	var found []subject
	for _, s := range subjects {
		sum, err := sumOf(s)
		if err != nil {
			return nil, err
		}
		if tried[s.dir] != sum {
			found = append(found, s)
		}
	}
	return found, nil
}

func readTried() (map[string]string, error) {
	text, err := os.ReadFile(triedPath)
	if err != nil {
		return nil, err
	}
	tried := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if dir, sum, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			tried[dir] = sum
		}
	}
	return tried, nil
}

// writeTried notes that these subjects were tried as they are now.
func writeTried(now []subject) error {
	tried, err := readTried()
	if err != nil {
		return err
	}
	for _, s := range now {
		if tried[s.dir], err = sumOf(s); err != nil {
			return err
		}
	}
	var out strings.Builder
	out.WriteString("# Written by: go run ./integration/mutants -write. A package whose sum differs has changed since all of\n# its mutants were tried, so the gate tries them.\n")
	for _, s := range subjects {
		if sum, ok := tried[s.dir]; ok {
			fmt.Fprintf(&out, "%s %s\n", s.dir, sum)
		}
	}
	return os.WriteFile(triedPath, []byte(out.String()), 0o644)
}

// sumOf sums up the sources of a subject and of its own tests.
func sumOf(s subject) (string, error) {
	hash := sha256.New()
	err := filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != s.dir && filepath.Base(path) != "testdata" && !strings.Contains(path, "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" && !strings.Contains(path, "testdata"):
			return nil
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(hash, "%s %d\n%s", filepath.ToSlash(path), len(text), text)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:16], err
}
