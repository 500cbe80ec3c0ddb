package proxy

import (
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/imports"
)

// forAnyTest are packages of the suite that know nothing of us: they run processes,
// choose which tests run, issue certificates and run tests that are data.
var forAnyTest = map[string]bool{"integration/child": true, "integration/datatest": true, "integration/fault": true, "integration/history": true, "integration/imports": true, "integration/layer": true, "integration/testca": true}

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
	checked := map[string]int{}
	for _, file := range imports.Files(t, "..") {
		part, _, _ := strings.Cut(file.Folder, "/")
		rules, known := allowed[part]
		if !known {
			t.Errorf("%s: no part of the house; say here whom it may import", file.Name)
			continue
		}
		checked[part]++
		forTests := file.IsTest || strings.HasPrefix(file.Name, "proxy/proxytest/") || strings.HasPrefix(file.Name, "redlock/livetest/")
		for _, imported := range file.Imports {
			rest, ours := strings.CutPrefix(imported, module+"/")
			if forAnyTest[rest] && forTests {
				continue
			}
			target, _, _ := strings.Cut(rest, "/")
			if ours && !rules[target] || imported == module {
				t.Errorf("%s imports %s", file.Name, imported)
			}
		}
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
	".": {floor: 8, redlock: []string{"", "resp", "loop"}},

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

func TestRoomsImportDownwards(t *testing.T) {
	files := imports.Files(t, ".")
	floors := map[string]int{}
	for _, file := range files {
		r, known := rooms[file.Folder]
		if _, forTests := testRooms[file.Folder]; !known && !forTests {
			t.Errorf("%s is a new room: say here on which floor", file.Folder)
		}
		if known {
			floors[file.Folder] = r.floor
		}
		for _, imported := range file.Imports {
			if target, ours := strings.CutPrefix(imported, "redlock-proxy/"); ours && !mayImport(file.Folder, target, file.IsTest) {
				t.Errorf("%s imports %s, to which no arrow leads", file.Name, imported)
			}
		}
	}
	t.Logf("\n%s", imports.Table(files, floors, "redlock-proxy/proxy/"))
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
