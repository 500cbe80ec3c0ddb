package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"redlock-proxy/integration/rig"
)

func init() {
	renews := map[string]string{"extend": "the lock renews itself"}
	rueidislock := map[string]string{
		"extend":          "the locker extends by itself",
		"foreign release": "a lock can only be given back through the function that came with it",
	}
	conformanceLibraries = slices.Concat(conformanceLibraries, []conformanceLibrary{
		{library: "redsync", version: "4.18.1", variant: "go-redis 9", selects: "redsync goredis", program: goLibrary, overValkey: true},
		{library: "redsync", version: "4.18.1", variant: "redigo", selects: "redsync redigo", program: goLibrary, overValkey: true},
		{library: "bsm/redislock", version: "0.9.4", selects: "redislock 0.9", program: goLibrary, overValkey: true},
		{library: "bsm/redislock", version: "0.10.0", selects: "redislock 0.10", program: goLibrary, overValkey: true},
		{library: "rueidislock", version: "1.0.79", selects: "rueidislock", rule: "rueidislock:*", program: goLibrary,
			skips: rueidislock, overValkey: true},
		{library: "rueidislock", version: "1.0.79", variant: "NoLoopTracking", selects: "rueidislock noloop", rule: "rueidislock:*",
			program: goLibrary, skips: rueidislock},
		{library: "rueidislock", version: "1.0.79", variant: "DisableCache", selects: "rueidislock nocache", rule: "rueidislock:*",
			program: goLibrary, skips: rueidislock},
		{library: "go-redis", version: "9.23.0", variant: "by hand", selects: "go-redis", program: goLibrary, overValkey: true},
		{library: "go-redis", version: "9.23.0", variant: "by hand, RESP2", selects: "go-redis RESP2", program: goLibrary},
		{library: "go-redis", version: "9.23.0", variant: "by hand, watchdog", selects: "go-redis watchdog", program: goLibrary,
			skips: renews, overValkey: true},
		{library: "redigo", version: "1.9.3", variant: "by hand", selects: "redigo", program: goLibrary, overValkey: true},
	})
}

// goLibrary builds the one program that has all Go libraries. Go's own caches keep its
// modules.
func goLibrary(t *testing.T) clientProgram {
	t.Helper()
	binary := filepath.Join(rig.Scratch, "conformance")
	installing.Lock()
	defer installing.Unlock()
	if _, err := os.Stat(binary); err != nil {
		if err := fetch(t, "clients/go-conformance", "go", "build", "-o", binary, "."); err != nil {
			t.Fatal(err)
		}
	}
	return clientProgram{words: []string{binary}}
}
