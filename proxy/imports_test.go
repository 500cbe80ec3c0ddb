package proxy

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// The parts know each other in one direction only: main -> proxy -> redlock.
// The integration tests see nothing but the built binary.
func TestImportDirection(t *testing.T) {
	const module = "redlock-proxy"
	allowed := map[string]map[string]bool{ // by a part's top folder
		".":           {"proxy": true},
		"proxy":       {"proxy": true, "redlock": true},
		"redlock":     {"redlock": true},
		"integration": {"integration": true},
	}
	root := os.DirFS("..")
	checked := map[string]int{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() || path.Ext(name) != ".go" {
			return nil
		}
		part, _, inFolder := strings.Cut(name, "/")
		if !inFolder {
			part = "."
		}
		rules, known := allowed[part]
		if !known {
			t.Errorf("%s: no part of the house; say here whom it may import", name)
			return nil
		}
		checked[part]++
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			rest, ours := strings.CutPrefix(imported, module+"/")
			if rest == "integration/child" && (strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "proxy/proxytest/")) {
				continue // it runs processes, and knows nothing of us
			}
			target, _, _ := strings.Cut(rest, "/")
			if ours && !rules[target] || imported == module {
				t.Errorf("%s imports %s", name, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{".", "proxy", "redlock"} {
		if checked[part] == 0 {
			t.Errorf("no files were found in %s", part)
		}
	}
}
