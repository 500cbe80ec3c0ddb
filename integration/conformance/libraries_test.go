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

	// long: the library runs in the tier Long only, because of its language.
	long bool

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

func (l conformanceLibrary) versionOf() (library, version string) { return l.library, l.version }
func (l conformanceLibrary) onlyLong() bool                       { return l.long }

// conformanceLibraries has the libraries of all languages: each language's file adds its
// own. It is sorted by name before use.
var conformanceLibraries []conformanceLibrary

func libraryNamed(t *testing.T, name string) conformanceLibrary {
	t.Helper()
	at := slices.IndexFunc(conformanceLibraries, func(l conformanceLibrary) bool { return l.name() == name })
	if at < 0 {
		t.Fatalf("there is no library %q", name)
	}
	return conformanceLibraries[at]
}

// ofThisTier returns the entries of a list that run in the chosen tier. In the tier Servers
// that is one of each library, unless its language belongs to the tier Long: the first
// variant of the newest version. The versions of a library are in their order.
func ofThisTier[L interface {
	versionOf() (library, version string)
	onlyLong() bool
}](t *testing.T, list []L) []L {
	t.Helper()
	if layer.Chosen() == layer.Long {
		return list
	}
	var libraries []string
	newest := map[string]L{}
	for _, l := range list {
		library, version := l.versionOf()
		if l.onlyLong() {
			continue
		}
		before, known := newest[library]
		if !known {
			libraries = append(libraries, library)
		} else if _, already := before.versionOf(); already == version {
			continue
		}
		newest[library] = l
	}
	var few []L
	for _, library := range libraries {
		few = append(few, newest[library])
	}
	t.Run("the others", func(t *testing.T) {
		layer.Only(t, layer.Long, fmt.Sprintf("%d more libraries, versions and variants", len(list)-len(few)))
	})
	return few
}
