package conformance

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	conformanceReadme  = "README.md"
	conformanceBegin   = "<!-- conformance: written by the suite, not by hand -->\n"
	conformanceEnd     = "<!-- end of conformance -->\n"
	conformanceCommand = "REDLOCK_TEST=long go test ./integration/conformance -run 'TestConformance$' -timeout 1h -conformance.write"
)

var writeConformance = flag.Bool("conformance.write", false, "write the table of TestConformance into the README")

// publish prints the table. It compares the README with it, or writes it into
// the README if the flag says so. Another version of what comes from Debian is no
// difference: it is told, but another Debian has it.
func publish(t *testing.T, all []library, results []result) {
	t.Helper()
	table := conformanceTable(t, results)
	t.Logf("\n%s", table)
	if t.Failed() || len(results) < len(all) {
		return // the table has only some of the libraries
	}
	readme, err := os.ReadFile(conformanceReadme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(readme), conformanceBegin)
	written, after, ends := strings.Cut(rest, conformanceEnd)
	switch {
	case !begins || !ends:
		t.Errorf("the README has no lines %q and %q", conformanceBegin, conformanceEnd)
	case withoutDebians(all, written) == withoutDebians(all, table) && (written == table || !*writeConformance):
	case *writeConformance:
		if err := os.WriteFile(conformanceReadme, []byte(before+conformanceBegin+table+conformanceEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the README's table is not what came out; write it with: %s", conformanceCommand)
	}
}

// withoutDebians returns the table without the versions of Debian's packages.
func withoutDebians(all []library, table string) string {
	debians := map[string]bool{}
	for _, l := range all {
		if l.version == "" {
			debians[l.row()] = true
		}
	}
	var b strings.Builder
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) > 3 && debians[strings.TrimPrefix(cells[0], "| ")] {
			line = strings.Join(append(cells[:1], cells[3:]...), " | ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// row returns the first cell of the library's row.
func (l library) row() string {
	if l.variant == "" {
		return l.library
	}
	return l.library + ", " + l.variant
}

// conformanceTable has a row for each library, variant and outcome.
func conformanceTable(t *testing.T, results []result) string {
	type row struct{ library, rule, passed, lost, remarks string }
	var rows []row
	versions, overValkey := map[row][]string{}, map[row][]string{}
	for _, r := range results {
		each := row{library: r.library.row(), rule: r.library.rule}
		each.passed, each.remarks = r.outcome(stories(t, "scenarios"))
		each.lost = "an error"
		if r.library.swallowsErrors {
			each.lost = "**\"not granted\"**"
		}
		if versions[each] == nil {
			rows = append(rows, each)
		}
		versions[each] = append(versions[each], r.version)
		if r.library.overValkey {
			overValkey[each] = append(overValkey[each], r.version)
		}
	}
	var b strings.Builder
	b.WriteString("| library | versions | over Valkey | lock rule | scenarios passed | without a majority | has no |\n|---|---|---|---|---|---|---|\n")
	for _, each := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` | %s | %s | %s |\n", each.library, strings.Join(versions[each], ", "),
			strings.Join(overValkey[each], ", "), each.rule, each.passed, each.lost, each.remarks)
	}
	return b.String()
}

// outcome counts the scenarios that the library has the means for, and those it passed.
func (r result) outcome(scenarios []story) (passed, remarks string) {
	good, all := 0, 0
	var notes []string
	for _, scenario := range scenarios {
		switch err := r.failed[scenario.Title]; {
		case errors.Is(err, errUnsupported):
			notes = append(notes, scenario.Title+": "+r.library.skips[scenario.Title])
		case err != nil:
			all++
			notes = append(notes, "**"+scenario.Title+" fails**: "+cmp.Or(r.library.fails[scenario.Title], "unexplained"))
		default:
			all++
			good++
		}
	}
	return fmt.Sprintf("%d of %d", good, all), strings.Join(notes, "; ")
}
