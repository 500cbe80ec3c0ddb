package redlock

import (
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/imports"
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
	".": {
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

func TestRoomsImportDownwards(t *testing.T) {
	files := imports.Files(t, ".")
	floors := map[string]int{}
	for _, file := range files {
		if _, known := roomOf(file.Folder); !known {
			t.Errorf("%s is a new room: say here whom it may import", file.Folder)
		}
		if r, known := rooms[file.Folder]; known {
			floors[file.Folder] = r.floor
		}
		for _, imported := range file.Imports {
			if wrong := wrongWith(file.Folder, imported, file.IsTest); wrong != "" {
				t.Errorf("%s imports %s: %s", file.Name, imported, wrong)
			}
		}
	}
	t.Logf("\n%s", imports.Table(files, floors, thisPackage+"/"))
}

// wrongWith returns what is wrong with an import of a room.
func wrongWith(room, imported string, isTest bool) string {
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
	case imported == thisModule+"/integration/imports" && isTest: // it reads imports
	case imported == thisModule+"/integration/child" && ofTests: // it ends a test's servers
	case isRoom && !slices.Contains(r.imports, target) && !(isTest && forTests):
		return "no arrow leads there"
	case isRoom:
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
	visit(".", nil)
}
