package conformance

import (
	"slices"
	"testing"
	"time"
)

func init() {
	conformanceLibraries = slices.Concat(conformanceLibraries, []conformanceLibrary{
		{library: "node-redlock", version: "4.2.0", swallowsErrors: true, program: nodeLibrary("conformance_redlock4.js")},
		{library: "node-redlock", version: "4.2.0", swallowsErrors: true, variant: "two resources", selects: "pair",
			program: nodeLibrary("conformance_redlock4.js")},
		{library: "node-redlock", version: "5.0.0-beta.2", swallowsErrors: true, program: nodeLibrary("conformance_redlock5.js"), overValkey: true},
		{library: "node-redlock", version: "5.0.0-beta.2", swallowsErrors: true, variant: "two resources", selects: "pair",
			program: nodeLibrary("conformance_redlock5.js")},
		{library: "node-redlock", version: "5.0.0-beta.2", swallowsErrors: true, variant: "using", selects: "using", renews: true,
			program: nodeLibrary("conformance_redlock5.js"),
			skips:   map[string]string{"extend": "using extends by itself"}},

		{library: "redis-semaphore", version: "5.8.0", variant: "Mutex over ioredis 5", renews: true, shortest: semaphoreTTL, selects: "ioredis5", rule: "mutex:*",
			program: nodeLibrary("conformance_semaphore.js")},
		{library: "redis-semaphore", version: "5.8.0", variant: "Mutex over ioredis 6", renews: true, shortest: semaphoreTTL, selects: "ioredis6", rule: "mutex:*",
			program: nodeLibrary("conformance_semaphore.js")},

		{library: "ioredis", version: "4.31.0", variant: "by hand", renews: true, selects: "ioredis4", program: nodeLibrary("conformance_idiom.js")},
		{library: "ioredis", version: "6.0.0", variant: "by hand", renews: true, selects: "ioredis6", program: nodeLibrary("conformance_idiom.js")},
		{library: "node-redis", version: "3.1.2", variant: "by hand", renews: true, selects: "redis3", program: nodeLibrary("conformance_idiom.js")},
		{library: "node-redis", version: "6.3.1", variant: "by hand", renews: true, selects: "redis6", program: nodeLibrary("conformance_idiom.js")},
	})
}

// nodeLibrary is for programs that choose the package by their arguments.
func nodeLibrary(script string) func(*testing.T) clientProgram {
	return func(t *testing.T) clientProgram {
		t.Helper()
		program := node(script, "")(t)
		program.words = program.words[:2]
		return program
	}
}

// semaphoreTTL leaves a busy machine a second: redis-semaphore renews after 80 % of the TTL.
const semaphoreTTL = 5 * time.Second
