package redlock

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The files that a room's doc.go names are in that room, or at that path from it.
func TestDocsNameFilesThatExist(t *testing.T) {
	docs, err := filepath.Glob("*/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, "doc.go") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range regexp.MustCompile(`[\w/]+\.(go|lua|txt)\b`).FindAllString(string(text), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(doc), file))
			if _, timeline := os.Stat(filepath.Join("testdata/timelines", file)); err != nil && timeline != nil {
				t.Errorf("%s names %s, which is not there", doc, file)
			}
		}
	}
}
