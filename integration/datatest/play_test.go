package datatest

import (
	"fmt"
	"strings"
	"testing"
)

const counting = `# A counter begins at the first line of the file.
begin 3

== it adds
add 2
    5
# Nothing comes of nothing.
add 0

== it begins anew
add 1
    4
    even
`

// counts is what the scripts above are played on.
func counts(s *Script) {
	sum := 0
	for event := range s.Events {
		var n int
		if _, err := fmt.Sscanf(event, "begin %d", &n); err == nil {
			sum = n
			continue
		}
		if _, err := fmt.Sscanf(event, "add %d", &n); err != nil {
			s.Printf("%v", err)
		}
		if sum += n; n != 0 {
			s.Printf("%d", sum)
		}
		if n != 0 && sum%2 == 0 {
			s.Printf("even")
		}
	}
}

// What is recorded is what comes out, each script begins with the first lines of the file, and what was
// recorded before changes nothing.
func TestScriptsAreRecordedAsTheyComeOut(t *testing.T) {
	opening, scripts := splitScripts(counting)
	if len(scripts) != 2 {
		t.Fatalf("%d scripts: %q", len(scripts), scripts)
	}
	for _, script := range scripts {
		s := &Script{t: t, text: opening + strings.ReplaceAll(script, "    even\n", "    odd\n    7\n")}
		counts(s)
		if got := s.out.String(); got != opening+script {
			t.Errorf("got\n%swant\n%s", got, opening+script)
		}
	}
}

func TestChangesAreShownLineByLine(t *testing.T) {
	const want = "  add 2\n-     4\n+     5\n  add 0\n+     5\n"
	if got := changes("add 2\n    4\nadd 0\n", "add 2\n    5\nadd 0\n    5\n"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
