package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"redlock-proxy/integration/rig"
)

func init() {
	conformanceLibraries = slices.Concat(conformanceLibraries, []conformanceLibrary{
		{library: "redis-rs", long: true, version: "1.8.1", variant: "by hand", selects: "redis-rs", program: rust},
		{library: "redlock (crate)", long: true, version: "2.0.0", selects: "redlock", program: rust,
			skips: map[string]string{
				"extend":     "it cannot prolong a lock",
				"inspection": "it cannot look at a lock",
			}},
		{library: "rslock", long: true, version: "0.7.4", swallowsErrors: true, selects: "rslock 0.7", program: rust},
		{library: "rslock", long: true, version: "0.10.0", swallowsErrors: true, selects: "rslock", program: rust, overValkey: true},
	})
}

// rust builds the one program that has all crates. Cargo keeps its output in the user's
// cache, so that only the first run takes minutes.
func rust(t *testing.T) clientProgram {
	t.Helper()
	rig.Need(t, rig.Cargo)
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(cache, "redlock-proxy-clients", "cargo")
	installing.Lock()
	defer installing.Unlock()
	if err := fetch(t, "clients/rust", "cargo", "build", "--quiet", "--release", "--locked", "--target-dir", target); err != nil {
		t.Fatal(err)
	}
	return clientProgram{words: []string{filepath.Join(target, "release", "conformance")}}
}
