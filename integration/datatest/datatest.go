// Package datatest runs tests that are data: questions to pure functions, and what
// comes out. Nothing but tests imports it.
//
// There are two kinds. Play plays scripts: events, and below each what came of it. Run asks questions of
// pure functions. The files testdata/*.txt hold them: a line of "== " and a name, words that say what
// it is about, and lines of a question, an arrow and an answer:
//
//	== an acquire is lost as soon as enough masters have answered
//	acquire n=5 granted=2 refused=3 -> Lost
//
// With -rewrite the answers are written into the files as they come out now, to be
// reviewed as a diff.
package datatest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the answers into testdata as they come out, to be reviewed as a diff")

// Run asks all questions in the files of testdata. A question that ask cannot read
// fails the test.
func Run(t *testing.T, ask func(t *testing.T, question string) (answer string)) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, test := range strings.SplitAfter(string(text), "\n\n") {
			name, _, _ := strings.Cut(strings.TrimPrefix(test, "== "), "\n")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+name, func(t *testing.T) {
				for line := range strings.Lines(test) {
					out = append(out, answered(t, line, ask))
				}
			})
		}
		if got := strings.Join(out, ""); *rewrite && got != string(text) {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// answered returns a line with the present answer to its question.
func answered(t *testing.T, line string, ask func(t *testing.T, question string) string) string {
	question, want, isQuestion := strings.Cut(line, " -> ")
	if !isQuestion {
		return line
	}
	got := ask(t, question) + "\n"
	if got != want && !*rewrite {
		t.Errorf("%s -> %swant %s", question, got, want)
	}
	return question + " -> " + got
}
