package integration

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// A conformanceLibrary is one lock library in one version, used the way its
// own documentation tells applications to.
type conformanceLibrary struct {
	library string // as its users know it
	version string // what its program must answer to "version"; "": what Debian ships
	variant string // tells apart two entries of one version

	// program runs the library; PORT and selects come behind its words, and it
	// speaks the protocol that conformance_client_test.go describes.
	program func(t *testing.T) clientProgram
	selects string

	// rule is the only lock rule of the proxy; "": lock:*. What the library
	// derives from a lock's name must work without a rule of its own.
	rule string
	// shortest is the TTL of a lock that is left to expire; 0: two seconds.
	shortest time.Duration
	// renews: by itself the library prolongs what a living client holds.
	renews bool
	// overValkey runs it once more with Valkey servers as masters.
	overValkey bool
	// upstreamKeys are globs of what the library writes, by its nature, to the
	// ordinary Redis; masterKeys of what it leaves behind where the lock was.
	upstreamKeys, masterKeys []string

	// swallowsErrors: it takes every error for "not granted", so that its users
	// cannot tell a lost quorum from a lock that is held.
	swallowsErrors bool
	// failedNode is the library's own word for a server that cannot answer, where
	// it does not pass the server's words on.
	failedNode string

	// skips gives by scenario the reason why the library has no such thing;
	// its program must answer "unsupported" there.
	skips map[string]string
	// fails gives by scenario the reason why the library cannot work so; it
	// must really fail.
	fails map[string]string
}

func (l conformanceLibrary) name() string {
	return strings.Join(slices.DeleteFunc([]string{l.library, l.version, l.variant}, func(s string) bool { return s == "" }), " ")
}

// conformanceLibraries is filled by the conformance_<language>_test.go files,
// and sorted by name before it is used.
var conformanceLibraries []conformanceLibrary
