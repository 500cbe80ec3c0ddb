package redlock

import (
	"bytes"
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
)

const (
	thisModule  = "redlock-proxy"
	thisPackage = thisModule + "/redlock"
	mostLines   = 2600 // of a room, without its tests
)

// A room is a package, here or below. An arrow leads from a room to each that it
// may import, and all of them lead downwards: each room can be read with those
// below it only.
type room struct {
	floor   int
	imports []string
	outside []string // the modules that it needs beside Go's own
	files   int      // at most; 0: any number
	lines   int      // at most; 0: mostLines
}

var rooms = map[string]room{
	"redlock": {
		floor: 3, imports: []string{"roster", "stream", "notify", "effect", "quorum", "resp", "rdb", "script"},
		outside: []string{"golang.org/x/sys"},
		// It is being emptied into the others: these may only go down, to 18 and 2,700.
		files: 38, lines: 5085,
	},
	"roster": {floor: 2, imports: []string{"quorum"}},
	"notify": {floor: 2, imports: []string{"resp", "quorum", "stream"}},
	"effect": {floor: 2, imports: []string{"quorum", "resp", "rdb"}},
	"stream": {floor: 2, imports: []string{"resp"}},
	"quorum": {floor: 1},
	"resp":   {floor: 1},
	"rdb":    {floor: 1},
	"script": {floor: 1, outside: []string{"github.com/yuin/gopher-lua"}},
}

// testRooms are imported by tests only, of any room.
var testRooms = map[string]room{
	"livetest": {imports: []string{"resp"}},
	"datatest": {},
}

// A survey is what there is in a room.
type survey struct {
	files, lines, testLines int
	imports                 []string
}

func TestRoomsImportDownwards(t *testing.T) {
	surveys := map[string]*survey{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
			return err
		}
		room, _ := path.Split(name)
		if room = strings.TrimSuffix(room, "/"); room == "" {
			room = "redlock"
		}
		if surveys[room] == nil {
			surveys[room] = &survey{}
		}
		return surveys[room].add(t, room, name)
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range surveys {
		r, known := roomOf(name)
		if !known {
			t.Errorf("%s is a new room: say here whom it may import", name)
		}
		if most := cmp.Or(r.lines, mostLines); s.lines > most {
			t.Errorf("%s has %d lines without its tests, and may have %d", name, s.lines, most)
		}
		if r.files > 0 && s.files > r.files {
			t.Errorf("%s has %d files without its tests, and may have %d", name, s.files, r.files)
		}
	}
	t.Logf("\n%s", tableOf(surveys))
}

// add counts a file of a room in and holds its imports against the room's.
func (s *survey) add(t *testing.T, room, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return err
	}
	isTest := strings.HasSuffix(name, "_test.go")
	if lines := bytes.Count(text, []byte("\n")); isTest {
		s.testLines += lines
	} else {
		s.files++
		s.lines += lines
	}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		if wrong := s.meets(room, imported, isTest); wrong != "" {
			t.Errorf("%s imports %s: %s", name, imported, wrong)
		}
	}
	return nil
}

// meets takes an import of a room down, and tells what is wrong with it.
func (s *survey) meets(room, imported string, isTest bool) string {
	r, _ := roomOf(room)
	target, isRoom := strings.CutPrefix(imported, thisPackage+"/")
	host, _, _ := strings.Cut(imported, "/")
	isGo := !strings.Contains(host, ".") && host != thisModule
	_, forTests := testRooms[target]
	switch {
	case isRoom && !slices.Contains(r.imports, target) && !(isTest && forTests):
		return "no arrow leads there"
	case isRoom && !isTest && !slices.Contains(s.imports, target):
		s.imports = append(s.imports, target)
	case !isRoom && host == thisModule:
		return "it is above"
	case !isRoom && !isGo && !isTest && !slices.ContainsFunc(r.outside, func(m string) bool { return imported == m || strings.HasPrefix(imported, m+"/") }):
		return "the room does not need this module"
	}
	return ""
}

func roomOf(name string) (r room, known bool) {
	if r, known = rooms[name]; !known {
		r, known = testRooms[name]
	}
	return r, known
}

// The arrows themselves lead downwards, or along a floor in one direction.
func TestArrowsLeadDownwards(t *testing.T) {
	var visit func(from string, way []string)
	visit = func(from string, way []string) {
		if slices.Contains(way, from) {
			t.Fatalf("the arrows lead in a circle: %v", append(way, from))
		}
		for _, to := range rooms[from].imports {
			if below, known := rooms[to]; !known || below.floor > rooms[from].floor {
				t.Errorf("%s may not import %s", from, to)
			}
			visit(to, append(slices.Clone(way), from))
		}
	}
	visit("redlock", nil)
}

// tableOf shows the rooms from the top floor down.
func tableOf(surveys map[string]*survey) string {
	var names []string
	for name := range rooms {
		if surveys[name] != nil {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if above := rooms[b].floor - rooms[a].floor; above != 0 {
			return above
		}
		return strings.Compare(a, b)
	})
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "floor\troom\tfiles\tlines\tlines of tests\timports")
	total := survey{}
	for _, name := range names {
		s := surveys[name]
		slices.Sort(s.imports)
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%d\t%s\n", rooms[name].floor, name, s.files, s.lines, s.testLines, strings.Join(s.imports, " "))
		total.files += s.files
		total.lines += s.lines
		total.testLines += s.testLines
	}
	fmt.Fprintf(table, "\tall\t%d\t%d\t%d\t\n", total.files, total.lines, total.testLines)
	table.Flush()
	return out.String()
}
