package route

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/proxy/proxytest"
)

func testRouter() *Router {
	return &Router{Table: Builtin(), Rules: Rules{
		{Match: "lock:*", DB: AnyDB},
		{Match: "three", DB: 3},
	}}
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
	r.Rules = append(r.Rules, Rule{Match: "*_LOCK", DB: AnyDB})
	for _, line := range append(commonCommands, "XINFO STREAM k", strings.Repeat("x", 500),
		"GET lock-signal:a", "GET redisson_lock_queue:{a}", "GET {a}:1:rwlock_timeout:1") {
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
