package shipped

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// documents are the texts that these tests check.
var documents = []string{
	"../README.md", "../deploy/README.md", "../deploy/INSTALL.md", "../deploy/RUN.md", "../deploy/INCIDENTS.md", "../deploy/REFERENCE.md",
	"README.md", "bench/README.md", "../redlock/doc.go",
}

// TestDocumentsNameTestsThatExist: every test that a document names as evidence exists.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	definition := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range definition.FindAllStringSubmatch(string(text), -1) {
			there[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, document := range documents {
		for _, name := range regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`).FindAllString(rig.ReadFile(t, document), -1) {
			if named++; !there[name] {
				t.Errorf("%s names %s, which does not exist", document, name)
			}
		}
	}
	if named < 40 {
		t.Errorf("only %d tests are named", named)
	}
}

// TestDocumentsLinkToWhatExists: every relative link leads to a file, and to a heading in it
// if the link names one.
func TestDocumentsLinkToWhatExists(t *testing.T) {
	t.Parallel()
	links := 0
	for _, document := range documents {
		text := rig.ReadFile(t, document)
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			path, heading, _ := strings.Cut(link[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			links++
			target := filepath.Join(filepath.Dir(document), path)
			if path == "" {
				target = document
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", document, link[1], err)
			} else if heading != "" && !headings(rig.ReadFile(t, target))[heading] {
				t.Errorf("%s links to %s, and there is no such heading", document, link[1])
			}
		}
	}
	if links < 5 {
		t.Errorf("only %d links were found", links)
	}
}

// headings returns the names that GitHub gives a text's headings in links.
func headings(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return anchors
}
