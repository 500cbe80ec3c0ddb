package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
)

// A conformanceLibrary is one lock library in one version, used as its own documentation
// says.
type conformanceLibrary struct {
	library string // the name that its users know
	version string // the answer of its program to "version"; "": Debian's
	variant string // distinguishes two entries of one version

	// program runs the library. PORT and selects are appended to its words. It uses the
	// protocol that client_test.go describes.
	program func(t *testing.T) clientProgram
	selects string

	// rule is the only lock rule of the proxy; "": lock:*. Keys that the library derives from
	// a lock's name must work without a rule of their own.
	rule string
	// shortest is the TTL of a lock that is left to expire; 0: two seconds.
	shortest time.Duration
	// renews: the library itself renews the lock of a living client.
	renews bool
	// overValkey: the library also runs with Valkey servers as masters.
	overValkey bool
	// upstreamKeys are globs of the keys that the library properly writes to the ordinary
	// Redis. masterKeys are globs of the keys that it leaves behind on the masters.
	upstreamKeys, masterKeys []string

	// swallowsErrors: the library takes every error for "not granted". Its users cannot tell
	// a lost quorum from a held lock.
	swallowsErrors bool
	// failedNode is the library's own text for a server that cannot answer, if the library
	// does not pass on the server's text.
	failedNode string

	// skips maps a scenario to the reason why the library has no means for it. The library's
	// program must then answer "unsupported".
	skips map[string]string
	// fails maps a scenario to the reason why the library cannot pass it. It must really fail.
	fails map[string]string
}

func (l conformanceLibrary) name() string {
	return strings.Join(slices.DeleteFunc([]string{l.library, l.version, l.variant}, func(s string) bool { return s == "" }), " ")
}

// conformanceLibraries has the libraries of all languages: each language's file adds its
// own. It is sorted by name before use.
var conformanceLibraries []conformanceLibrary

// everyday has the libraries that the tier servers tests, too. All others, and all other
// versions of these, run only in the tier long.
var everyday = []string{
	"phpredis by hand", "Symfony Lock over phpredis", "Laravel cache lock over phpredis",
	"Jedis 8.0.2 by hand", "Redisson 4.7.0 RLock", "Redisson 4.7.0 fair lock", "Spring RedisLockRegistry 7.1.0 pub-sub lock",
	"redis-py 8.1.0", "python-redis-lock 4.0.1", "pottery 3.0.1",
	"redsync 4.18.1 go-redis 9",
}

// everydayClients is the same as everyday, for client libraries.
var everydayClients = []string{
	"phpredis", "predis", "jedis 8.0.2", "lettuce 7.7.0.RELEASE", "redisson 4.7.0",
	"redis-py 5.2.1", "redis-py 8.1.0", "redis-py 8.1.0 asyncio", "go-redis 9.23.0",
}

// ofThisLayer returns the entries of a list that run in the chosen tier.
func ofThisLayer[L interface{ name() string }](t *testing.T, list []L, everyday []string) []L {
	t.Helper()
	if layer.Chosen() == layer.Long {
		return list
	}
	t.Run("the others", func(t *testing.T) {
		layer.Only(t, layer.Long, fmt.Sprintf("%d more libraries and versions", len(list)-len(everyday)))
	})
	var few []L
	for _, l := range list {
		if slices.Contains(everyday, l.name()) {
			few = append(few, l)
		}
	}
	if len(few) != len(everyday) {
		panic(fmt.Sprintf("%d of %q are in the list", len(few), everyday))
	}
	return few
}
