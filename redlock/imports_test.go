package redlock

import (
	"bytes"
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
)

// A room is this package or one below it. An arrow leads from a room to each room that it
// may import. All arrows lead downwards, so you can read a room with only those below it.
type room struct {
	floor   int
	imports []string
	outside []string // the modules that it needs besides Go's own packages
}

var rooms = map[string]room{
	"redlock": {
		floor: 4, imports: []string{"run", "heal", "mend", "scan", "token", "ballot", "master", "roster", "marker", "lane", "loop", "stream", "notify", "effect", "quorum", "resp", "rdb", "script"},
	},
	"run":    {floor: 3, imports: []string{"loop", "mend", "ballot", "master", "lane", "effect", "script", "stream", "quorum", "rdb", "resp"}},
	"heal":   {floor: 3, imports: []string{"loop", "scan", "mend", "ballot", "lane", "effect", "stream", "quorum", "rdb", "resp"}},
	"scan":   {floor: 3, imports: []string{"ballot", "effect", "loop", "marker", "master", "stream", "quorum", "rdb", "resp"}},
	"mend":   {floor: 3, imports: []string{"loop", "ballot", "lane", "effect", "stream", "quorum", "rdb"}},
	"token":  {floor: 3, imports: []string{"loop", "ballot", "lane", "marker", "quorum", "resp"}},
	"ballot": {floor: 3, imports: []string{"loop", "master", "lane", "stream", "roster", "quorum", "resp"}},
	"master": {
		floor: 3, imports: []string{"roster", "marker", "members", "stream", "loop", "quorum", "resp"},
		outside: []string{"golang.org/x/sys"},
	},
	"roster":  {floor: 2, imports: []string{"marker", "members", "quorum", "timing"}},
	"lane":    {floor: 2, imports: []string{"loop", "quorum"}},
	"notify":  {floor: 2, imports: []string{"resp", "quorum", "stream", "loop"}},
	"effect":  {floor: 2, imports: []string{"quorum", "resp", "rdb"}},
	"stream":  {floor: 2, imports: []string{"resp", "loop"}},
	"quorum":  {floor: 1},
	"marker":  {floor: 1, imports: []string{"members"}},
	"members": {floor: 1},
	"timing":  {floor: 1},
	"resp":    {floor: 1},
	"rdb":     {floor: 1},
	"loop":    {floor: 1, outside: []string{"golang.org/x/sys"}},
	"script":  {floor: 1, outside: []string{"github.com/yuin/gopher-lua"}},
}

// testRooms may be imported only by tests, but by those of any room.
var testRooms = map[string]room{
	"spec":      {}, // the specification: it tests what it says of the others
	"livetest":  {imports: []string{"resp"}},
	"sim":       {imports: []string{"loop"}},
	"toymaster": {imports: []string{"loop", "sim", "resp", "rdb"}, outside: []string{"github.com/yuin/gopher-lua"}},
}

// A survey counts what a room contains.
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
	for name := range surveys {
		if _, known := roomOf(name); !known {
			t.Errorf("%s is a new room: say here whom it may import", name)
		}
	}
	t.Logf("\n%s", tableOf(surveys))
}

// add counts a file of a room, and checks its imports against those that the room may
// have.
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

// meets notes an import of a room and returns what is wrong with it.
func (s *survey) meets(room, imported string, isTest bool) string {
	r, _ := roomOf(room)
	target, isRoom := strings.CutPrefix(imported, thisPackage+"/")
	host, _, _ := strings.Cut(imported, "/")
	isGo := !strings.Contains(host, ".") && host != thisModule
	_, forTests := testRooms[target]
	_, ofTests := testRooms[room]
	switch {
	case (imported == thisModule+"/integration/layer" || imported == thisModule+"/integration/fault" || imported == thisModule+"/integration/history") && (isTest || ofTests): // which tests run, names of faults, and the judge of histories
	case imported == thisModule+"/integration/testca" && isTest: // it issues certificates
	case imported == thisModule+"/integration/datatest" && isTest: // it runs tests that are data
	case imported == thisModule+"/integration/child" && ofTests: // it ends a test's servers
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

// tableOf returns a table of the rooms, from the top floor down.
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
