package route

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

var planeNames = map[Plane]string{Upstream: "upstream", Locks: "lock", Split: "split", Cross: "cross"}

func testRouter() *Router {
	return &Router{Table: Builtin(), Rules: Rules{
		{Match: "lock:*", DB: AnyDB},
		{Match: "three", DB: 3},
	}}
}

// describe returns a route as text: the plane and the keys, as in "lock 1,2". If keys
// are not all of one kind, L marks the lock keys, as in "cross 1,2L". "!" means
// malformed, "#" reserved and ">" elsewhere.
func describe(to Route) string {
	var keys []string
	for i, at := range to.Keys {
		mark := ""
		if to.Lock[i] && to.Plane != Locks {
			mark = "L"
		}
		keys = append(keys, fmt.Sprint(at, mark))
	}
	text := planeNames[to.Plane] + " " + strings.Join(keys, ",")
	if to.Malformed {
		text += "!"
	}
	if to.Reserved {
		text += "#"
	}
	if to.Elsewhere {
		text += ">"
	}
	return text
}

func TestRoute(t *testing.T) {
	for _, row := range []struct{ line, Route string }{
		// Keys of one kind, or no keys.
		{"PING", "upstream "},
		{"NOSUCHCOMMAND a", "upstream "},
		{"NOSUCHCOMMAND", "upstream "},
		{"lock:a b", "upstream "},
		{"NOSUCHCOMMAND lock:a", "lock "},
		{"NOSUCHCOMMAND a 5 lock-signal:a", "lock "},
		{"NOSUCHCOMMAND three", "upstream "},
		{"NOSUCHCOMMAND a " + markerKey, "upstream #"},
		{"XINFO NOSUCH lock:a", "lock "},
		{"XINFO NOSUCH a", "upstream "},
		{"EXEC", "upstream "},
		{"EXEC IFEQ a lock:v NX b", "upstream 2,5"},
		{"EXEC IFEQ lock:a v", "lock 2"},
		{"EXEC NX a NX lock:a", "cross 2,4L"},
		{"EXEC NX a NX lock:a b", "lock 2,4,5!"},
		{"GET a", "upstream 1"},
		{"get lock:a", "lock 1"},
		{"SET lock:a v NX PX 5", "lock 1"},
		{"SET a lock:b", "upstream 1"},
		{"SETNX lock:a 1", "lock 1"},
		{"DELEX lock:a IFEQ v", "lock 1"},
		{"DELIFEQ lock:a v", "lock 1"},
		{"DIGEST lock:a", "lock 1"},
		{"MSET a 1 b 2", "upstream 1,3"},
		{"MSET lock:a 1 lock:b 2", "lock 1,3"},
		{"MSETEX 2 lock:a 1 lock:b 2 NX", "lock 2,4"},
		{"OBJECT ENCODING lock:a", "lock 2"},
		{"XINFO STREAM lock:a", "lock 2"},
		{"BLPOP lock-signal:a 0", "lock 1"},
		{"SPUBLISH lock:a message", "upstream "},
		{"PUBLISH lock:a message", "upstream "},
		{"SUBSCRIBE lock:a", "upstream "},
		{"KEYS lock:*", "upstream "},
		{"SCAN 0 MATCH lock:*", "upstream "},
		{"WATCH lock:a lock:b", "lock 1,2"},
		{"COMMAND GETKEYS GET lock:a", "upstream "},
		{"GET three", "upstream 1"},

		// To another database.
		{"MOVE lock:a 3", "lock 1>"},
		{"MOVE lock:a 0", "lock 1"}, // Redis answers that source and destination are the same
		{"MOVE a 3", "upstream 1"},
		{"MOVE three 3", "upstream 1>"},
		{"MOVE three 3 REPLACE", "upstream 1!>"}, // of Valkey 9.2
		{"MOVE lock:a 3 REPLACE", "lock 1!>"},
		{"MOVE lock:a", "lock 1!"},
		{"COPY three", "upstream 1!"},
		{"MOVE lock:a x", "lock 1"},
		{"COPY lock:a lock:b", "lock 1,2"},
		{"COPY lock:a lock:b REPLACE", "lock 1,2"},
		{"COPY lock:a lock:b DB 0", "lock 1,2"},
		{"COPY lock:a lock:b DB 3", "lock 1,2>"},
		{"COPY lock:a lock:b REPLACE db 0 DB 3", "lock 1,2>"},
		{"COPY lock:a b DB 3", "cross 1L,2>"},
		{"COPY a b DB 3", "upstream 1,2"},
		{"COPY a three DB 3", "upstream 1,2>"},
		{"COPY three b DB 3", "upstream 1,2"},

		// Keys of both kinds.
		{"DEL a lock:b c", "split 1,2L,3"},
		{"UNLINK lock:a b", "split 1L,2"},
		{"EXISTS a lock:a", "split 1,2L"},
		{"TOUCH a lock:a", "split 1,2L"},
		{"MGET a lock:a b", "split 1,2L,3"},
		{"DEL lock:a lock:b", "lock 1,2"},
		{"WATCH a lock:a", "cross 1,2L"},
		{"MSET a 1 lock:b 2", "cross 1,3L"},
		{"MSETNX lock:a 1 b 2", "cross 1L,3"},
		{"RENAME lock:a b", "cross 1L,2"},
		{"RENAME a lock:b", "cross 1,2L"},
		{"COPY lock:a lock:b", "lock 1,2"},
		{"BLPOP a lock:b 0", "cross 1,2L"},
		{"ZUNIONSTORE a 2 b lock:c", "cross 1,3,4L"},
		{"ZUNIONSTORE lock:a 1 lock:b", "lock 1,3"},

		// Keys that are hard to find.
		{"SORT a STORE lock:x", "cross 1,3L"},
		{"SORT a BY lock:* GET lock:*", "upstream 1"},
		{"SORT lock:a STORE lock:b", "lock 1,3"},
		{"GEORADIUS a 1 2 3 km STORE lock:b", "cross 1,7L"},
		{"MIGRATE host 1 lock:a 0 5", "lock 3"},
		{"MIGRATE host 1  0 5 KEYS a lock:b", "cross 7,8L"},
		{"XREAD COUNT 1 STREAMS a lock:b 0 0", "cross 4,5L"},
		{"XREADGROUP GROUP g c STREAMS lock:a >", "lock 5"},

		// Scripts.
		{"EVAL script 0", "upstream "},
		{"EVAL lock:a 0", "upstream "},
		{"EVAL script 1 lock:a token 5", "lock 3"},
		{"EVALSHA sha 2 lock:a lock:b token", "lock 3,4"},
		{"EVAL script 1 a lock:b", "cross 3,4L"},
		{"EVAL script 2 a lock:b", "cross 3,4L"},
		{"EVAL script 0 x lock:b", "lock 4"},
		{"EVAL_RO script 1 lock:a x lock:b", "lock 3,5"},
		{"EVALSHA_RO sha 1 a x", "upstream 3"},
		{"EVAL script 2 lock:a lock-signal:a token", "lock 3,4"},
		{"EVAL script 3 lock:a redisson_lock__channel:{lock:a} redisson_unlock_latch:{lock:a}:1 0", "lock 3,4,5"},
		{"EVAL script 1 symfony_check_support_time", "lock 3"},
		{"FCALL function 1 lock:a", "lock 3"},
		{"FCALL_RO function 1 a", "upstream 3"},

		// Wrong arguments.
		{"GET", "upstream !"},
		{"GET a lock:a", "upstream 1!"},
		{"GET lock:a b", "lock 1!"},
		{"SET lock:a", "lock 1!"},
		{"DEL", "upstream !"},
		{"MSET lock:a", "lock 1!"},
		{"RENAME a", "upstream 1!"},
		{"RENAME lock:a b c", "lock 1,2!"},
		{"EVAL script", "upstream !"},
		{"EVAL script x lock:a b", "lock 3,4!"},
		{"EVAL script 5 a lock:b", "lock 3,4!"},
		{"EVAL script -1 a b", "upstream 3,4!"},
		{"EVAL script 01 lock:a", "lock 3!"},
		{"EVAL script 99999999999999999999 lock:a", "lock 3!"},
		{"ZUNION x a lock:b", "lock 2,3!"},

		// The masters' marker.
		{"GET redlock-proxy:master", "upstream 1#"},
		{"DEL lock:a redlock-proxy:master", "split 1L,2#"},
		{"GET redlock-proxy:master b", "upstream 1!#"},
		{"EVAL script 1 lock:a redlock-proxy:master", "lock 3#"},
		{"EVAL script 0 redlock-proxy:master", "upstream #"},
		{"SET a redlock-proxy:master", "upstream 1"},
	} {
		if got := describe(testRouter().Route(0, proxytest.Words(row.line))); got != row.Route {
			t.Errorf("%s: %q, not %q", row.line, got, row.Route)
		}
	}
	if got := describe(testRouter().Route(3, proxytest.Words("GET three"))); got != "lock 1" {
		t.Errorf("a rule for database 3: %q", got)
	}
	if got := testRouter().Route(0, nil); got.Spec != nil || got.Plane != Upstream {
		t.Errorf("no arguments: %+v", got)
	}
}

func TestRouteWhereEverythingIsALock(t *testing.T) {
	r := &Router{Table: Builtin(), Rules: Rules{{Match: "*", DB: AnyDB}}}
	for line, want := range map[string]string{
		"GET ":                "lock 1",
		"PING a":              "upstream ",
		"EVAL script 1 a b c": "lock 3",
		"EVAL script 0 a b":   "lock 3,4",
		"EVAL script 0":       "upstream ",
	} {
		if got := describe(r.Route(0, proxytest.Words(line))); got != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
}

func TestRouteWithoutRules(t *testing.T) {
	r := &Router{Table: Builtin()}
	for _, line := range []string{"GET lock:a", "EVAL script 0 lock:a", "GET symfony_check_support_time"} {
		if to := r.Route(0, proxytest.Words(line)); to.Plane != Upstream {
			t.Errorf("%s: %s", line, describe(to))
		}
	}
}

// A caller may keep a route while it makes others, so routes must not reuse memory.
func TestRoutesAreIndependent(t *testing.T) {
	r := testRouter()
	lines := []string{
		"GET a", "GET lock:a", "MSET a 1 b 2", "MSETEX 2 a 1 b 2", "DEL a lock:b", "DEL lock:a b", "SORT a STORE b",
		"EVAL script 2 a b", "DEL" + strings.Repeat(" a", sharedKeys-1), "DEL" + strings.Repeat(" lock:a", sharedKeys),
		"DEL" + strings.Repeat(" a", 5*sharedKeys) + " lock:a", "MSET" + strings.Repeat(" a 1", 5*sharedKeys),
	}
	var routes []Route
	var want []string
	for _, line := range lines {
		to := r.Route(0, proxytest.Words(line))
		routes, want = append(routes, to), append(want, describe(to))
		if cap(to.Keys) > len(to.Keys) && len(to.Keys) > 0 && len(to.Keys) < 32 {
			t.Errorf("%.30s: an append to the keys would write into a shared slice", line)
		}
	}
	for i, line := range lines {
		if got := describe(routes[i]); got != want[i] {
			t.Errorf("%.30s: became %.50q, was %.50q", line, got, want[i])
		}
	}
	if got := len(routes[len(routes)-1].Keys); got != 5*sharedKeys {
		t.Errorf("MSET has %d keys", got)
	}
}

var commonCommands = []string{
	"PING", "GET some:ordinary:key", "SET some:ordinary:key value EX 10", "GET lock:a", "SET lock:a token NX PX 10000",
	"DEL lock:a", "EVALSHA sha 1 lock:a token", "MSET a 1 b 2", "XREAD STREAMS a b 0 0", "DEL a b c d", "NOSUCHCOMMAND a b",
	"MGET" + strings.Repeat(" key", inlineKeys),
}

func TestRouteDoesNotAllocate(t *testing.T) {
	r := testRouter()
	for _, line := range commonCommands {
		args := proxytest.Words(line)
		if n := testing.AllocsPerRun(100, func() { r.Route(0, args) }); n != 0 {
			t.Errorf("%.40s: %v allocations", line, n)
		}
	}
}

func FuzzRoute(f *testing.F) {
	for _, line := range append(slices.Concat(commonCommands, proxytest.KeyExamples), "EVAL s 99999999999 a", "MIGRATE h 1  0 5 AUTH2", "SORT a STORE", "GET "+markerKey) {
		f.Add(0, []byte(line))
	}
	rules := Rules{{Match: "lock:*", DB: AnyDB}, {Match: "*_LOCK", DB: 1}, {Match: `[^a-\*]?*[`, DB: AnyDB}, {Match: "*", DB: 2}}
	r := &Router{Table: Builtin(), Rules: rules}
	f.Fuzz(func(t *testing.T, db int, line []byte) {
		args := bytes.Split(line, []byte(" "))
		to := r.Route(db, args)
		if len(to.Keys) != len(to.Lock) {
			t.Fatalf("%d keys and %d flags", len(to.Keys), len(to.Lock))
		}
		locks := 0
		for i, at := range to.Keys {
			if at < 1 || at >= len(args) {
				t.Fatalf("key %d of %d arguments", at, len(args))
			}
			if covered := rules.Covers(db, args[at]); covered != to.Lock[i] {
				t.Fatalf("%q: lock key: %t", args[at], to.Lock[i])
			}
			if to.Lock[i] {
				locks++
			}
			if string(args[at]) == markerKey && !to.Reserved {
				t.Fatal("the marker is not reserved")
			}
		}
		switch to.Plane {
		case Upstream:
			if locks > 0 {
				t.Fatalf("%s with lock keys", describe(to))
			}
		case Locks:
			if locks == 0 || locks < len(to.Keys) && !to.Malformed {
				t.Fatalf("%s without a lock key, or with others", describe(to))
			}
		default:
			if locks == 0 || locks == len(to.Keys) && !to.Spec.Is(Script) {
				t.Fatalf("%s with keys of one kind", describe(to))
			}
		}
	})
}

func BenchmarkRoute(b *testing.B) {
	r := testRouter()
	for _, line := range append(commonCommands, "EVAL script 1 lock:a lock:b", "DEL a lock:b") {
		args := proxytest.Words(line)
		b.Run(fmt.Sprintf("%.24s", line), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Route(0, args)
			}
		})
	}
}

// A route has the rule of its first lock key, and none if that is only a companion.
func TestRouteHasTheRuleOfItsFirstLock(t *testing.T) {
	router := &Router{Table: Builtin(), Rules: Rules{{Match: "lock:*", DB: AnyDB}, {Match: "job:*", DB: AnyDB}}}
	for line, want := range map[string]string{
		"GET lock:a":               "lock:*",
		"GET job:a":                "job:*",
		"GET a":                    "companion",
		"GET lock-signal:a":        "companion",
		"DEL a job:a lock:a":       "job:*",
		"MGET lock-signal:a job:a": "companion",
		"EVAL s 0 x job:a lock:a":  "job:*",
		"EVAL s 1 lock:a job:a":    "lock:*",
		"EVAL s 1 a job:a":         "job:*",
	} {
		if got := router.Route(0, proxytest.Words(line)).Rule.Name(); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	args := proxytest.Words("MGET a job:a b lock:a")
	upstreamHalf, lockHalf, ofLocks := router.Route(0, args).Halves(args)
	if string(bytes.Join(upstreamHalf, []byte(" "))) != "MGET a b" || string(bytes.Join(lockHalf, []byte(" "))) != "MGET job:a lock:a" ||
		ofLocks.Plane != Locks || ofLocks.Rule.Name() != "job:*" || !slices.Equal(ofLocks.Keys, []int{1, 2}) || !slices.Equal(ofLocks.Lock, []bool{true, true}) {
		t.Errorf("%q, %q, %+v", upstreamHalf, lockHalf, ofLocks)
	}
}
