package conformance

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// TestLearn: a proxy that learns finds the rule of each library from its own traffic alone: one client takes two locks
// and gives them back. The upstream then knows no script, as after the handbook's SCRIPT FLUSH. The patterns match the keys of these locks, and nothing that the library derives from them.
// There are no masters.
func TestLearn(t *testing.T) {
	t.Parallel()
	upstream := rig.StartServer(t, "upstream")
	for i, library := range sorted(ofThisTier(t, allLibraries(t))) {
		t.Run(library.testName(), func(t *testing.T) {
			program := library.install(t)
			proxy := rig.StartProxy(t, rig.Options{Upstream: upstream.URL(), Learn: true})
			if err := upstream.Direct.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			client, err := startClient("the client", program, fmt.Sprint(proxy.Port), library.selects)
			if err != nil {
				t.Fatal(err)
			}
			var keys []string
			for n := range 2 {
				name := fmt.Sprintf("lock:learn-%d:%d", i, n)
				for _, question := range [][]any{{"key", name}, {"acquire", name, 120_000}, {"release", name}} {
					answer, err := client.ask(question...)
					if err != nil || answer == "no" {
						t.Fatalf("%q is answered %q, %v\n%s", question, answer, err, client.log)
					}
					if question[0] == "key" {
						keys = append(keys, strings.Fields(answer)...)
					}
				}
			}
			if err := client.finish(); err != nil {
				t.Error(err)
			}
			patterns := proxy.Unruled(t)
			matches := func(pattern, key string) bool {
				yes, _ := path.Match(pattern, key)
				return yes
			}
			for _, key := range keys {
				if !slices.ContainsFunc(patterns, func(p string) bool { return matches(p, key) }) {
					t.Errorf("no pattern matches %q: %q\n%s", key, patterns, client.log)
				}
			}
			for _, p := range patterns {
				if !slices.ContainsFunc(keys, func(key string) bool { return matches(p, key) }) {
					t.Errorf("%q matches no lock", p)
				}
			}
		})
	}
}
