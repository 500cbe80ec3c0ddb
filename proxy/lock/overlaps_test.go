package lock

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/route"
)

// Only commands that concern nothing but their one key may run beside others of their client.
func TestOverlaps(t *testing.T) {
	const release = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
	const other = "return redis.call('set','lock:undeclared','1')"
	texts := NewScripts(1<<20, nil)
	texts.Register([]byte(release))
	texts.Register([]byte(other))
	router := &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "waits", DB: route.AnyDB, Wait: time.Second}, {Match: "ruled", DB: route.AnyDB}}}
	p := New(Config{Scripts: texts, Router: func() *route.Router { return router }})
	sha := map[string]string{release: "ae3671744a5dbb24ea37ef607b8b10ac7856d43e", other: "91b5df7fd64f1b2e4238de37b599daf19cdeed71"}
	for line, want := range map[string]bool{
		"SETNX k v":                      true,
		"SETNX k":                        false,
		"SETNX waits v":                  false,
		"SETNX ruled v":                  true,
		"SET waits v NX":                 false,
		"SET k v NX PX 1":                true,
		"SET k v px 1 nx":                true,
		"SET k v":                        false,
		"SET k":                          false,
		"SET k NX":                       false,
		"SET k v NX GET":                 false,
		"SET k v XX":                     false,
		"GET k":                          false,
		"EVAL release 1 k v":             true,
		"EVAL release 2 k v":             false,
		"EVAL release 1":                 false,
		"EVAL release 10 k v":            false,
		"EVAL release":                   false,
		"EVAL other 1 k v":               false,
		"EVAL unknown 1 k v":             false,
		"EVALSHA sha-of-release 1 k v":   true,
		"EVALSHA sha-of-release 2 k k v": false,
		"EVALSHA sha-of-other 1 k v":     false,
	} {
		var args [][]byte
		for _, word := range strings.Fields(line) {
			switch word {
			case "release":
				word = release
			case "other":
				word = other
			case "sha-of-release":
				word = sha[release]
			case "sha-of-other":
				word = sha[other]
			}
			args = append(args, []byte(word))
		}
		call := Command{Args: args, Route: router.Route(0, args)}
		if got := p.Overlaps(call); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
}
