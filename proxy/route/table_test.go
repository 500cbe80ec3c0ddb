package route

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

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
