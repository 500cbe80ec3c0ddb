package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// A library is one lock library in one version: an entry of libraries.txt, which says what the fields mean.
type library struct {
	library, version, variant string
	program                   []string // the language, and what runs it there
	selects                   string
	rule                      string
	shortest                  time.Duration
	long, renews              bool
	overValkey, overTLS       bool
	swallowsErrors            bool
	failedNode                string
	upstreamKeys, masterKeys  []string
	skips, fails              map[string]string // reasons, by scenario
}

func (l library) name() string {
	return strings.Join(slices.DeleteFunc([]string{l.library, l.version, l.variant}, func(s string) bool { return s == "" }), " ")
}

// testName is the name of a subtest.
func (l library) testName() string { return strings.ReplaceAll(l.name(), "/", "-") }

// allLibraries returns the entries of libraries.txt in its order.
func allLibraries(t *testing.T) []library {
	t.Helper()
	var all []library
	for line := range strings.Lines(rig.ReadFile(t, "conformance/libraries.txt")) {
		line = strings.TrimRight(line, "\n")
		field, isField := strings.CutPrefix(line, "    ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !isField:
			cells := append(strings.Split(line, " | "), "", "")
			if cells[1] == "Debian's" {
				cells[1] = ""
			}
			all = append(all, library{library: cells[0], version: cells[1], variant: cells[2],
				rule: "lock:*", shortest: 2 * time.Second, skips: map[string]string{}, fails: map[string]string{}})
		default:
			if l := &all[len(all)-1]; !l.set(field) {
				t.Fatalf("libraries.txt, %s: %q", l.name(), field)
			}
		}
	}
	return all
}

// set reads one line of an entry.
func (l *library) set(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	scenario, why, _ := strings.Cut(rest, ": ")
	switch {
	case line == "long":
		l.long = true
	case line == "renews":
		l.renews = true
	case line == "over valkey":
		l.overValkey = true
	case line == "over TLS":
		l.overTLS = true
	case line == "swallows errors":
		l.swallowsErrors = true
	case word == "selects":
		l.selects = rest
	case word == "rule":
		l.rule = rest
	case word == "error":
		l.failedNode = rest
	case word == "shortest":
		var err error
		l.shortest, err = time.ParseDuration(rest)
		return err == nil
	case strings.HasPrefix(line, "upstream keeps "):
		l.upstreamKeys = append(l.upstreamKeys, line[len("upstream keeps "):])
	case strings.HasPrefix(line, "masters keep "):
		l.masterKeys = append(l.masterKeys, line[len("masters keep "):])
	case word == "no" && why != "":
		l.skips[scenario] = why
	case word == "fails" && why != "":
		l.fails[scenario] = why
	case l.program == nil && installers[word] != nil:
		l.program = strings.Fields(line)
	default:
		return false
	}
	return true
}

func libraryNamed(t *testing.T, name string) library {
	t.Helper()
	all := allLibraries(t)
	at := slices.IndexFunc(all, func(l library) bool { return l.name() == name })
	if at < 0 {
		t.Fatalf("there is no library %q", name)
	}
	return all[at]
}

// sorted sorts by library, ignoring case. Within a library the order of the list stays.
func sorted(libraries []library) []library {
	return slices.SortedStableFunc(slices.Values(libraries), func(a, b library) int {
		return cmp.Compare(strings.ToLower(a.library), strings.ToLower(b.library))
	})
}

// ofThisTier returns the libraries that run in the chosen tier. In the tier Servers that is
// one of each library, unless its language belongs to the tier Long: the first variant of the
// newest version. The versions of a library are in their order.
func ofThisTier(t *testing.T, list []library) []library {
	t.Helper()
	if layer.Chosen() == layer.Long {
		return list
	}
	var few []library
	for _, l := range list {
		at := slices.IndexFunc(few, func(other library) bool { return other.library == l.library })
		switch {
		case l.long || at >= 0 && few[at].version == l.version:
		case at >= 0:
			few[at] = l
		default:
			few = append(few, l)
		}
	}
	t.Run("the others", func(t *testing.T) {
		layer.Only(t, layer.Long, fmt.Sprintf("%d more libraries, versions and variants", len(list)-len(few)))
	})
	return few
}
