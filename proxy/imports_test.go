package proxy

import (
	"bytes"
	"cmp"
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

// forAnyTest are packages of the suite that know nothing of us: they run processes,
// choose which tests run, issue certificates and run tests that are data.
var forAnyTest = map[string]bool{"integration/child": true, "integration/datatest": true, "integration/fault": true, "integration/history": true, "integration/layer": true, "integration/testca": true}

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
			if forAnyTest[rest] && (strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "proxy/proxytest/") || strings.HasPrefix(name, "redlock/livetest/")) {
				continue
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

// A room is a package below proxy, or proxy itself. It may import rooms on lower
// floors, so each can be read with those below it only.
type room struct {
	floor   int
	redlock []string // what of redlock it may import: "" for redlock itself
}

var rooms = map[string]room{
	"proxy": {floor: 8, redlock: []string{"", "resp", "loop"}},

	"handler":  {floor: 7, redlock: []string{"", "resp", "loop"}},
	"console":  {floor: 6, redlock: []string{"", "resp", "scan"}},
	"session":  {floor: 5, redlock: []string{"loop"}},
	"inspect":  {floor: 5, redlock: []string{""}},
	"config":   {floor: 4, redlock: []string{""}},
	"lease":    {floor: 3, redlock: []string{""}},
	"lock":     {floor: 5, redlock: []string{"", "resp", "loop", "script"}},
	"unruled":  {floor: 4, redlock: []string{"resp"}},
	"pubsub":   {floor: 6, redlock: []string{"", "loop", "resp"}},
	"route":    {floor: 3, redlock: []string{"", "resp"}}, // the name of the masters' marker
	"upstream": {floor: 3, redlock: []string{"resp", "loop"}},
	"embedded": {floor: 3, redlock: []string{"rdb"}},
	"endpoint": {floor: 2, redlock: []string{"resp"}},
	"wire":     {floor: 1, redlock: []string{"resp"}},
	"events":   {floor: 1, redlock: []string{""}}, // the masters' states, and what an Observer is told
}

// testRooms are imported by tests only, of any room.
var testRooms = map[string]room{
	"proxytest": {redlock: []string{"livetest", "loop"}},
}

// A contents is what there is in a room.
type contents struct {
	lines, testLines int
	imports          map[string]bool
}

func TestRoomsImportDownwards(t *testing.T) {
	found := map[string]*contents{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		in := path.Dir(name)
		if in == "." {
			in = "proxy"
		}
		if found[in] == nil {
			found[in] = &contents{imports: map[string]bool{}}
		}
		return found[in].add(t, in, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range found {
		_, known := rooms[name]
		if _, forTests := testRooms[name]; !known && !forTests {
			t.Errorf("%s is a new room: say here on which floor", name)
		}
	}
	t.Logf("\n%s", tableOf(found))
}

// add counts a file of a room in and holds its imports against the floors.
func (c *contents) add(t *testing.T, in, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	isTest := strings.HasSuffix(name, "_test.go")
	_, forTests := testRooms[in]
	if lines := bytes.Count(text, []byte("\n")); isTest || forTests {
		c.testLines += lines
	} else {
		c.lines += lines
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if target, ours := strings.CutPrefix(imported, "redlock-proxy/"); ours && !mayImport(in, target, isTest) {
			t.Errorf("%s imports %s, to which no arrow leads", name, imported)
		} else if ours && !isTest {
			c.imports[strings.TrimPrefix(target, "proxy/")] = true
		}
	}
	return nil
}

// mayImport tells whether an arrow leads from a room to a package of ours.
func mayImport(in, target string, isTest bool) bool {
	from, known := rooms[in]
	if !known {
		from = testRooms[in]
	}
	if of, isRedlock := strings.CutPrefix(target, "redlock"); isRedlock {
		return isTest || slices.Contains(from.redlock, strings.TrimPrefix(of, "/"))
	}
	if forAnyTest[target] {
		return isTest || !known
	}
	name := strings.TrimPrefix(target, "proxy/")
	if _, forTests := testRooms[name]; forTests {
		return isTest
	}
	to, exists := rooms[name]
	return exists && to.floor < from.floor
}

// tableOf shows the rooms from the top floor down.
func tableOf(found map[string]*contents) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "floor\troom\tlines\ttests\timports")
	names := slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		return cmp.Or(rooms[b].floor-rooms[a].floor, strings.Compare(a, b))
	})
	total := 0
	for _, name := range names {
		c := found[name]
		total += c.lines
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%s\n", rooms[name].floor, name, c.lines, c.testLines, strings.Join(slices.Sorted(maps.Keys(c.imports)), " "))
	}
	fmt.Fprintf(table, "\tall\t%d\n", total)
	_ = table.Flush()
	return text.String()
}
