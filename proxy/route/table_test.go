package route

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

func TestLookup(t *testing.T) {
	table := Builtin()
	for _, row := range []struct{ line, name string }{
		{"GET k", "get"},
		{"gEt k", "get"},
		{"get", "get"},
		{"XINFO STREAM k", "xinfo|stream"},
		{"xinfo Stream k", "xinfo|stream"},
		{"xinfo", "xinfo"},
		{"xinfo nothing k", ""},
		{"get\x00 k", ""},
		{"GETX k", ""},
		{"", ""},
		{strings.Repeat("g", 1000) + " k", ""},
		{"xinfo " + strings.Repeat("g", 1000), ""},
		{"restore-asking k", "restore-asking"},
		{"DELEX k IFEQ v", "delex"},
		{"DELIFEQ k v", "delifeq"},
		{"MSETEX 1 k v", "msetex"},
		{"DIGEST k", "digest"},
		{"CLIENT no-touch on", "client|no-touch"}, // only Valkey has it
		{"COMMANDLOG get 1 slow", "commandlog|get"},
		{"HIMPORT SET k set v", "himport|set"},
		{"redlock STATUS", "redlock|status"},
		{"REDLOCK TOKEN lock:a value", "redlock|token"},
		{"redlock", "redlock"},
		{"redlock nothing k", "redlock"}, // no server may answer it
	} {
		name := ""
		if spec := table.Lookup(proxytest.Words(row.line)); spec != nil {
			name = spec.Name
		}
		if name != row.name {
			t.Errorf("%.40q is %q, not %q", row.line, name, row.name)
		}
	}
	if table.Lookup(nil) != nil {
		t.Error("a request without arguments is a command")
	}
}

func TestLookupDoesNotAllocate(t *testing.T) {
	table := Builtin()
	for _, line := range []string{"SET k v", "XINFO STREAM k", "NOSUCHCOMMAND", strings.Repeat("x", 500)} {
		args := proxytest.Words(line)
		if n := testing.AllocsPerRun(100, func() { table.Lookup(args) }); n != 0 {
			t.Errorf("%.20q: %v allocations", line, n)
		}
	}
}

func TestCommandFlags(t *testing.T) {
	table := Builtin()
	for _, row := range []struct{ line, flags string }{
		{"get", "readonly"},
		{"set", "write"},
		{"blpop", "write blocking"},
		{"xread", "readonly blocking"},
		{"eval", ""},
		{"eval_ro", "readonly"},
		{"subscribe", ""},
		{"watch", "noMulti"},
		{"multi", "noMulti"},
	} {
		spec := table.Lookup(proxytest.Words(row.line))
		for name, set := range map[string]bool{
			"readonly": spec.Readonly(), "write": spec.Write(), "blocking": spec.Blocking(), "noMulti": spec.NoMulti(),
		} {
			if want := strings.Contains(row.flags, name); set != want {
				t.Errorf("%s: %s is %t", row.line, name, set)
			}
		}
	}
}

func TestArity(t *testing.T) {
	table := Builtin()
	for line, right := range map[string]bool{
		"GET": false, "GET k": true, "GET k k": false,
		"SET k": false, "SET k v": true, "SET k v NX PX 5": true,
		"OBJECT ENCODING": false, "OBJECT ENCODING k": true,
		"DELEX": false, "DELEX k": true, "DELEX k IFEQ v": true,
	} {
		args := proxytest.Words(line)
		if spec := table.Lookup(args); spec.ArityOK(len(args)) != right {
			t.Errorf("%s: %t", line, !right)
		}
	}
}

// newerRows are rows that tell what a newer server says, where Redis 7.0 says less or has a mistake.
var newerRows = strings.Fields(`client|reply cluster|replicate command|getkeys command|getkeysandflags multi script|debug
	wait watch zrank zrevrank`)

// The rows are those of a server, or newer. A server with more commands than the table, or other ones, is found here.
func TestExtendedByALiveServer(t *testing.T) {
	reply := proxytest.StartRedis(t).Commands(t)
	live, err := (&Table{}).With(reply)
	if err != nil {
		t.Fatal(err)
	}
	if spec := live.Lookup(proxytest.Words("XREADGROUP")); spec == nil || spec.Arity != -7 || len(spec.keys) != 1 {
		t.Errorf("XREADGROUP of a live server is %+v", spec)
	}
	ours := map[string]*Spec{}
	for spec := range Builtin().All() {
		ours[spec.Name] = spec
	}
	for spec := range live.All() {
		row := ours[spec.Name]
		switch {
		case row == nil:
			t.Errorf("commands.txt has no row for %s", spec.Name)
		case slices.Contains(newerRows, spec.Name):
		case row.Arity != spec.Arity || row.flags != spec.flags || !slices.Equal(row.keys, spec.keys):
			t.Errorf("the row of %s is %d %b %+v, and the server says %d %b %+v", spec.Name, row.Arity, row.flags, row.keys, spec.Arity, spec.flags, spec.keys)
		}
	}
}

// commandReply reads a reply to COMMAND from JSON.
func commandReply(t testing.TB, text string) []any {
	t.Helper()
	var reply []any
	if err := json.Unmarshal([]byte(text), &reply); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return reply
}

func TestExtendedByModules(t *testing.T) {
	builtin := Builtin()
	index2 := `[["flags",["RW"],"begin_search",["type","index","spec",["index",2]],"find_keys",["type","range","spec",["lastkey",0,"keystep",1,"limit",0]]]]`
	table, err := builtin.With(commandReply(t, `[
		["OLD.get", 2, ["readonly"], 1, 1, 1],
		["old.mset", -3, ["write"], 1, -1, 2, ["@write"]],
		["old.none", -1, [], 0, 0, 0],
		["set", -3, ["readonly"], 2, 2, 1],
		["get", 2, [], 0, 0, 0, [], [], [], [["get|sub", 3, [], 2, 2, 1, [], [], `+index2+`, []]]],
		["new.container", -2, [], 0, 0, 0, [], [], [], [["new.container|sub", 3, ["write"], 2, 2, 1, [], [], `+index2+`, []]]],
		["xinfo", -2, [], 0, 0, 0, [], [], [], [["xinfo|stream", 9, [], 0, 0, 0], ["xinfo|newer", 3, [], 2, 2, 1, [], [], `+index2+`, []]]]
	]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		line string
		keys string
	}{
		{"old.GET k", "[1]"},
		{"old.mset a 1 b 2", "[1 3]"},
		{"old.none a b", "[]"},
		{"set k v", "[1]"},
		{"get sub", "[1]"},
		{"new.container SUB k", "[2]"},
		{"xinfo newer k", "[2]"},
		{"xinfo stream k", "[2]"},
	} {
		args := proxytest.Words(row.line)
		spec := table.Lookup(args)
		if spec == nil {
			t.Errorf("%s is unknown", row.line)
			continue
		}
		if keys, exact := spec.AppendKeys(nil, args); fmt.Sprint(keys) != row.keys || !exact {
			t.Errorf("%s: keys %v (exact: %t), not %s", row.line, keys, exact, row.keys)
		}
	}
	if builtin.Lookup(proxytest.Words("xinfo newer k")) != nil || builtin.Lookup(proxytest.Words("old.get k")) != nil {
		t.Error("the built-in table was changed")
	}
	if !table.Lookup(proxytest.Words("set k v")).Write() {
		t.Error("a server changed SET")
	}
}

func TestMalformedCommandReply(t *testing.T) {
	for _, text := range []string{
		`["OK"]`, `[1]`, `[[],[]]`,
		`["get"]`,
		`[[]]`,
		`[["get",2,["x"],1,1]]`,
		`[["",2,["x"],1,1,1]]`,
		`[[1,2,["x"],1,1,1]]`,
		`[["get","2",["x"],1,1,1]]`,
		`[["get",2,"x",1,1,1]]`,
		`[["get",2,[],"1",1,1]]`,
		`[["get",99999999999,[],1,1,1]]`,
		`[["get",2,[],1,1,1,[],[],null,[]]]`,
		`[["get",2,[],1,1,1,[],[],[null],[]]]`,
		`[["get",2,[],1,1,1,[],[],[["begin_search",["type","index","spec",["index",0]]]],[]]]`,
		`[["get",2,[],1,1,1,[],[],[["begin_search",["type","keyword","spec",["keyword",5,"startfrom",1]],"find_keys",["type","range","spec",["lastkey",0,"keystep",1,"limit",0]]]],[]]]`,
		`[["get",2,[],1,1,1,[],[],[],null]]`,
		`[["get",2,[],1,1,1,[],[],[],[[]]]]`,
	} {
		if table, err := Builtin().With(commandReply(t, text)); err == nil {
			t.Errorf("%s: no error, but a table of %d commands", text, len(table.commands))
		}
	}
}

// A server may send any key specification. The search for keys must end, and must
// stay within the arguments.
func TestAbsurdKeySpecifications(t *testing.T) {
	numbers := []int{-1 << 31, -3, -1, 0, 1, 2, 1<<31 - 1}
	lines := []string{"m", "m 1", "m 2 a b", "m KEYWORD a b", "m a KEYWORD", "m 2147483647 9223372036854775807 3"}
	check := func(spec *Spec) {
		for _, line := range lines {
			args := proxytest.Words(line)
			keys, _ := spec.AppendKeys(nil, args)
			for _, i := range keys {
				if i < 1 || i >= len(args) {
					t.Errorf("%+v: key %d of %q", spec.keys, i, line)
				}
			}
		}
	}
	for _, a := range numbers {
		for _, b := range numbers {
			for _, c := range numbers {
				for _, find := range []string{
					fmt.Sprintf(`["type","range","spec",["lastkey",%d,"keystep",%d,"limit",%d]]`, a, b, c),
					fmt.Sprintf(`["type","keynum","spec",["keynumidx",%d,"firstkey",%d,"keystep",%d]]`, a, b, c),
				} {
					for _, begin := range numbers {
						for _, search := range []string{
							fmt.Sprintf(`["type","index","spec",["index",%d]]`, begin),
							fmt.Sprintf(`["type","keyword","spec",["keyword","keyword","startfrom",%d]]`, begin),
						} {
							reply := commandReply(t, `[["m",-1,[],0,0,0,[],[],[["flags",[],"begin_search",`+search+`,"find_keys",`+find+`]],[]]]`)
							if table, err := (&Table{}).With(reply); err == nil {
								check(table.Lookup(proxytest.Words("m")))
							}
						}
					}
				}
			}
			reply := commandReply(t, fmt.Sprintf(`[["m",-1,[],%d,%d,1]]`, a, b))
			if table, err := (&Table{}).With(reply); err == nil {
				check(table.Lookup(proxytest.Words("m")))
			}
		}
	}
}

func FuzzCommandReply(f *testing.F) {
	f.Add([]byte(`[["get",2,["readonly"],1,1,1]]`))
	f.Add([]byte(`[["m",-1,[],0,0,0,[],[],[["flags",["not_key"]]],[["m|x",2,[],1,1,1]]]]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var reply []any
		if json.Unmarshal(text, &reply) != nil {
			return
		}
		table, err := Builtin().With(reply)
		if err != nil {
			return
		}
		for _, spec := range table.commands {
			if _, known := Builtin().commands[spec.Name]; !known {
				spec.AppendKeys(nil, proxytest.Words("m 2 a b KEYS c"))
			}
		}
	})
}
