package livetest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Corpus is all scripts of the suite's corpus, which means what the scripts of lock
// libraries mean, by their names. They are read from the suite's files, in that folder, for the suite
// shares no package with the product. Below a line "script NAME", the text of a script is indented. A
// line with bytes other than a text's is in Go's quotes.
func Corpus(t testing.TB, suite string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(suite, "corpus", "scenarios", "*.txt"))
	texts := map[string]string{}
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		theme, script := strings.TrimSuffix(filepath.Base(path), ".txt"), ""
		for line := range strings.SplitSeq(string(file), "\n") {
			name, isScript := strings.CutPrefix(line, "script ")
			part, isPart := strings.CutPrefix(line, "    ")
			if quoted, err := strconv.Unquote(part); err == nil {
				part = quoted
			}
			switch {
			case isScript:
				script = "corpus_" + theme + ": " + name
			case isPart && texts[script] != "":
				texts[script] += "\n" + part
			case isPart:
				texts[script] = part
			}
		}
	}
	if err != nil || len(texts) == 0 {
		t.Fatalf("the suite's corpus is not where it was: %v", err)
	}
	return texts
}
