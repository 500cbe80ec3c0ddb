// Package imports reads what the files of a tree import, for tests that say whom each package may know. Nothing but tests
// imports it.
package imports

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
)

// A File is a Go file of a tree.
type File struct {
	Name    string // with its folder
	Folder  string // "." for the tree's own
	IsTest  bool
	Lines   int
	Imports []string
}

// Files reads all Go files of a tree. Folders that begin with a dot and those with the data of tests are left out.
func Files(t *testing.T, tree string) (files []File) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(tree), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(filepath.Join(tree, name))
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		file := File{Name: name, Folder: path.Dir(name), IsTest: strings.HasSuffix(name, "_test.go"), Lines: bytes.Count(text, []byte("\n"))}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			file.Imports = append(file.Imports, imported)
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Table shows the packages of a tree from the top floor down, with the lines of their code and of their tests, and what they
// import of the packages whose paths begin with prefix. Packages without a floor are left out.
func Table(files []File, floors map[string]int, prefix string) string {
	type row struct {
		files, lines, testLines int
		imports                 map[string]bool
	}
	rows := map[string]*row{}
	all := row{}
	for _, f := range files {
		if _, has := floors[f.Folder]; !has {
			continue
		}
		r := rows[f.Folder]
		if r == nil {
			r = &row{imports: map[string]bool{}}
			rows[f.Folder] = r
		}
		if f.IsTest {
			r.testLines, all.testLines = r.testLines+f.Lines, all.testLines+f.Lines
			continue
		}
		r.files, r.lines, all.files, all.lines = r.files+1, r.lines+f.Lines, all.files+1, all.lines+f.Lines
		for _, imported := range f.Imports {
			if name, ours := strings.CutPrefix(imported, prefix); ours {
				r.imports[name] = true
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		if above := floors[b] - floors[a]; above != 0 {
			return above
		}
		return strings.Compare(a, b)
	})
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "floor\troom\tfiles\tlines\tlines of tests\timports")
	for _, name := range names {
		r := rows[name]
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%d\t%s\n", floors[name], name, r.files, r.lines, r.testLines, strings.Join(slices.Sorted(maps.Keys(r.imports)), " "))
	}
	fmt.Fprintf(table, "\tall\t%d\t%d\t%d\t\n", all.files, all.lines, all.testLines)
	table.Flush()
	return out.String()
}
