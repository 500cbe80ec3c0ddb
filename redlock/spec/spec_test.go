package spec

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/layer"
)

// read returns a file. The go command sees what a test reads, so it runs the test again when that changes.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rules returns the names of the rules, which are constants of the modules.
func rules(t *testing.T) (names []string) {
	t.Helper()
	for module, begin := range map[string]string{"Redlock.tla": "\\* The page: locks are taken", "Copies.tla": "\\* The rules of counters"} {
		_, text, found := strings.Cut(read(t, module), begin)
		text, _, ended := strings.Cut(text, "\nMax(S)")
		if !found || !ended {
			t.Fatalf("%s does not list its rules between %q and Max(S)", module, begin)
		}
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, "\\*")
			names = append(names, regexp.MustCompile(`\b[A-Z][A-Za-z]+\b`).FindAllString(line, -1)...)
		}
	}
	return names
}

// A row is one of README.md's table of rules.
type row struct{ rule, kept, steps string }

func table(t *testing.T) (rows []row) {
	t.Helper()
	for line := range strings.Lines(read(t, "README.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 || strings.HasPrefix(cells[0], "---") {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if strings.HasPrefix(cells[3], "[") { // another table has numbers there
			rows = append(rows, row{cells[0], cells[2], cells[3]})
		}
	}
	return rows
}

// Each rule of the module has a row, a configuration without it and a history, and each of these belongs to
// a rule.
func TestEachRuleHasItsHistory(t *testing.T) {
	names := rules(t)
	if len(names) < 20 {
		t.Fatalf("%d rules: %q", len(names), names)
	}
	var described []string
	for _, r := range table(t) {
		described = append(described, r.rule)
		file := "histories/" + r.rule + ".txt"
		steps := strings.Count(read(t, file), "\n") - 1 // it begins with a line of the beginning
		if want := fmt.Sprintf("[%d](%s)", steps, file); r.steps != want {
			t.Errorf("%s: the last column is %s, want %s", r.rule, r.steps, want)
		}
	}
	slices.Sort(described)
	slices.Sort(names)
	if !slices.Equal(described, names) {
		t.Errorf("README.md describes\n%q\nand the modules have\n%q", described, names)
	}
	var checked []string
	for _, m := range regexp.MustCompile(`(?m)^(?:check|slow) (\S+) found`).FindAllStringSubmatch(read(t, "configurations"), -1) {
		checked = append(checked, m[1])
	}
	var found []string
	files, _ := filepath.Glob("histories/*.txt")
	for _, file := range files {
		found = append(found, strings.TrimSuffix(filepath.Base(file), ".txt"))
	}
	slices.Sort(checked)
	if !slices.Equal(found, checked) {
		t.Errorf("histories has\n%q\nand TLC must find\n%q", found, checked)
	}
	for _, name := range found {
		if !slices.Contains(names, name) && !strings.HasPrefix(name, "exception-") {
			t.Errorf("histories/%s.txt belongs to no rule", name)
		}
	}
}

// shown are the histories as the program meets them: scripts of the roster, timelines (one of several scripts in a file
// has the file's path and the title) and other tests. Each fails if the code does not keep the rule.
var shown = map[string][]string{
	"MajorityNeeded":          {`testdata/timelines/acquire.txt: "If and only if the client was able to acquire the lock in the majority of the instances"`, "TestTwoQuorumsShareAMaster"},
	"ValidityChecked":         {`testdata/timelines/acquire.txt: "The total time elapsed is less than lock validity time": 40 ms elapse, and 2 ms and 1 % of the TTL are the drift`, "ballot/testdata/ballots.txt: what was read in time may be too late to win, because the process may have been paused since"},
	"UndoOrdered":             {"testdata/timelines/undo.txt: An undo follows its acquire on the same stream", "testdata/timelines/waiting.txt: The successor kills its predecessor first", "testdata/timelines/waiting.txt: Debts come before new calls"},
	"CompareOnRelease":        {`testdata/timelines/release.txt: "Releasing the lock is simple": by value only, and only what a quorum holds`, "testdata/timelines/release.txt: No master is ever told a bare DEL, whatever goes wrong"},
	"CompareOnRenewal":        {"testdata/timelines/extend.txt: A renewal changes only the holder's lock"},
	"RenewalNeverShortens":    {"testdata/timelines/extend.txt: A renewal never shortens a lock"},
	"MarkerChecked":           {`testdata/timelines/certify.txt: "Delayed restarts": a master that forgot does not vote until every lock has ended`, "flush.txt"},
	"CheckedInBatch":          {"testdata/timelines/certify.txt: A flush is noticed by the very next batch"},
	"RunIdChecked":            {"restart.txt"},
	"JumpIsAmnesia":           {"clock.txt", "testdata/timelines/certify.txt: A clock that jumps forward has forgotten"},
	"QuarantineCoversTTL":     {"flush_lengthened.txt", `testdata/timelines/certify.txt: "Delayed restarts": a master that forgot does not vote until every lock has ended`},
	"NewSetWaits":             {"founding.txt", "flush_all.txt", "testdata/timelines/certify.txt: A new set begins in quarantine"},
	"LongestTTLRecordedFirst": {"testdata/timelines/certify.txt: A longer TTL is on record before it is granted"},
	"LongestTTLFromEnough":    {"roster/testdata/forgetting.txt: two forgot and one is away, for a process that never knew the longest TTL", "restart_dead.txt"},
	"OnlyMarkersTell":         {"flush_unread.txt"}, // the code does not keep it: what happens then
	"CapOnRecord":             {"restart_one_by_one.txt"},
	"AskedAfterPatience":      {"roster/testdata/jumps.txt: others are waited for no longer than until they have answered", "testdata/timelines/databases.txt: A ballot that raises the longest TTL is still under way when a master that voted in it forgets"},
	"PlanExpires":             {"testdata/timelines/databases.txt: A late mark does not certify what was flushed"},
	"CapRatherThanWait":       {"restart_dead.txt", "testdata/timelines/certify.txt: No master is locked out: a minority that is dead does not keep a restarted master out"},
	"OneChangeAtATime":        {"resize_grow.txt", "roster/testdata/joining.txt: the next change waits for max_quarantine", "roster/testdata/numbers.txt: not while the last change is young"},
	"NewServerQuarantined":    {"replacement.txt", "testdata/timelines/changes.txt: A replaced master stops voting, and the new one begins in quarantine"},
	"EarlierListTells":        {"resize_shrink.txt", "roster/testdata/numbers.txt: after a removal, each quorum of the list before has a master that tells"},
	"OperatorTellsAll":        {"replacement.txt", "replacement_forgotten.txt"}, // people keep it: what a process with the old list does
	"ReplacedIsStopped":       {"replacement.txt"},
	"EpochOnRecordFirst":      {"failover.txt"},
	"OldListStandsDown":       {"failover.txt", "roster/testdata/newcomers.txt: a promoted server of two, and the server of before as another process sees it"},
	"BallotEndsWithEpoch":     {"roster/testdata/joining.txt: nothing counts where who the masters are has just changed", "testdata/timelines/changes.txt: An acquire that was overtaken is tried again"},
	"TokenOnQuorum":           {"testdata/timelines/token.txt: A token needs a quorum"},
	"TokenOnlyRaised":         {"testdata/timelines/token.txt: The largest token is the last", "TestTimelineNoTokenIsGivenTwice"},
	"CountedByQuorum":         {"testdata/live/runs.txt: Counters that drifted apart are no quorum, although each changes by the same amount"},
	"UndoExact":               {"effect/testdata/examined/undone.txt: whatever happened to the key after the run, it is then another's"},
	"UndoneOnce":              {"testdata/timelines/run.txt: A count is put back once"},
	"UnitedWhenQuiet":         {"testdata/timelines/mend.txt: Mending spares what has changed"},
	"UnitedFromAll":           {"testdata/timelines/mend.txt: Copies are not made equal while a master may have forgotten"},
	"HighestUnited":           {"testdata/timelines/mend.txt: A counter that differs is made equal, and then counts"},
	"FieldsOfQuorum":          {"testdata/timelines/mend.txt: Fields that a quorum has are united", "TestSimulationCounts"},
	"TokenLearnedAgain":       {"testdata/timelines/token.txt: A master that forgot learns the token before it votes"},
}

func TestEachRuleIsShown(t *testing.T) {
	names := rules(t)
	for rule := range shown {
		if !slices.Contains(names, rule) {
			t.Errorf("no module has a rule %s", rule)
		}
	}
	files, _ := filepath.Glob("../*_test.go")
	more, _ := filepath.Glob("../*/*_test.go")
	var tests strings.Builder
	for _, file := range append(files, more...) {
		tests.WriteString(read(t, file))
	}
	for _, rule := range names {
		if len(shown[rule]) == 0 {
			t.Errorf("no test shows what happens without %s", rule)
		}
		for _, name := range shown[rule] {
			if file, title, isScript := strings.Cut(name, ".txt: "); isScript {
				if !strings.Contains(read(t, "../"+file+".txt"), "== "+title+"\n") {
					t.Errorf("%s: there is no script %s", rule, name)
				}
			} else if strings.HasSuffix(name, ".txt") {
				read(t, "../roster/testdata/"+name)
			} else if !strings.Contains(tests.String(), "\nfunc "+name+"(t ") {
				t.Errorf("%s: there is no test %s", rule, name)
			}
		}
	}
}

// The code that keeps a rule is where README.md says. A name without a slash is in the file or folder before
// it.
func TestEachRuleIsKept(t *testing.T) {
	named := regexp.MustCompile("`([^`]+)`")
	for _, r := range table(t) {
		all := named.FindAllStringSubmatch(r.kept, -1)
		if len(all) == 0 && !strings.Contains(r.kept, "the operator") && !strings.Contains(r.kept, "nowhere") {
			t.Errorf("%s: %q names no code", r.rule, r.kept)
		}
		place := ""
		for _, m := range all {
			name := m[1]
			if folder, inside, found := strings.Cut(name, "."); found && !strings.Contains(name, "/") && inside != "lua" {
				place, name = filepath.Join("..", folder), inside
			}
			switch {
			case strings.HasPrefix(name, "-"): // a flag
			case strings.Contains(name, "/") || strings.HasSuffix(name, ".lua"):
				place = filepath.Join("..", name)
				if _, err := os.Stat(place); err != nil {
					t.Errorf("%s: %v", r.rule, err)
				}
			case place == "": // in words
			case !declares(t, place, name):
				t.Errorf("%s: %s declares no %s", r.rule, place, name)
			}
		}
	}
}

// declares tells whether a file, or a Go file of a folder, has a function, constant, variable or field of
// that name.
func declares(t *testing.T, place, name string) bool {
	t.Helper()
	files := []string{place}
	if info, err := os.Stat(place); err != nil {
		return false
	} else if info.IsDir() {
		files, _ = filepath.Glob(filepath.Join(place, "*.go"))
	}
	declared := regexp.MustCompile(`(?m)(^func (\([^)]*\) )?|^\s*(const |var )?)` + regexp.QuoteMeta(name) + `\b`)
	return slices.ContainsFunc(files, func(file string) bool { return declared.MatchString(read(t, file)) })
}

// A comment `// rule: Name: ...` in the code names a rule of the module.
func TestRulesOfTheCodeAreRulesOfTheModule(t *testing.T) {
	names := rules(t)
	named := regexp.MustCompile(`// rule: ([A-Z][a-z]+[A-Z][A-Za-z]*)\b`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") {
			return err
		}
		for _, m := range named.FindAllStringSubmatch(read(t, path), -1) {
			if !slices.Contains(names, m[1]) {
				t.Errorf("%s: no module has a rule %s", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TLC finds nothing where all rules hold, and a history as long as the one in histories where one does not.
// What takes long runs in the last tier only. The go command runs this again if a file that it reads has
// changed.
func TestSpecification(t *testing.T) {
	layer.Only(t, layer.Servers, "TLC's check of the specification")
	layer.Program(t, "java", "default-jre-headless")
	layer.Program(t, "mvn", "maven")
	files, _ := filepath.Glob("histories/*.txt")
	for _, name := range append(files, "Redlock.tla", "Copies.tla", "configurations", "check.sh") {
		read(t, name)
	}
	cmd := exec.Command("./check.sh", "-quick")
	if layer.Chosen() == layer.Long {
		cmd = exec.Command("./check.sh")
	}
	cmd.Env = append(cmd.Environ(), "TLC_LIMIT=1800") // the machine may be busy
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		t.Log(lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
