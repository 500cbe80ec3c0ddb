package shipped

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// documents are the texts that these tests check.
var documents = []string{
	"../README.md", "../deploy/README.md", "../deploy/INSTALL.md", "../deploy/RUN.md", "../deploy/INCIDENTS.md", "../deploy/REFERENCE.md",
	"../deploy/CHANGELOG.md", "../deploy/SECURITY.md",
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

// pointer is how texts of the program, alerts and comments name a page of the handbook.
var pointer = regexp.MustCompile(`deploy/([A-Z]+\.md)(?:#([a-z0-9-]+))?`)

// TestPointersToTheHandbookLeadSomewhere: what the program says, an alert or a comment names a page of the
// handbook and a heading of it that exist.
func TestPointersToTheHandbookLeadSomewhere(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".go", ".yaml", ".html", ".service", ".sh", ".tpl", ".txt", ".8"}, filepath.Ext(path)) {
			return err
		}
		for _, to := range pointer.FindAllStringSubmatch(rig.ReadFile(t, path), -1) {
			found++
			page := filepath.Join("../deploy", to[1])
			if _, err := os.Stat(page); err != nil {
				t.Errorf("%s names %s: %v", path, to[0], err)
			} else if to[2] != "" && !headings(rig.ReadFile(t, page))[to[2]] {
				t.Errorf("%s names %s, and there is no such heading", path, to[0])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 30 {
		t.Errorf("only %d pointers were found", found)
	}
}

// TestAlertsNameTheirRunbook: each alert leads to what the handbook says about it.
func TestAlertsNameTheirRunbook(t *testing.T) {
	t.Parallel()
	rules := alertRules(t)
	for name, rule := range rules {
		if want := "deploy/INCIDENTS.md#" + strings.ToLower(name); rule.Annotations["runbook"] != want {
			t.Errorf("%s has the runbook %q, want %s", name, rule.Annotations["runbook"], want)
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (Redlock\w+)$`).FindAllStringSubmatch(rig.ReadFile(t, "../deploy/INCIDENTS.md"), -1) {
		if _, there := rules[heading[1]]; !there {
			t.Errorf("the handbook says what to do about %s, which is no alert", heading[1])
		}
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
