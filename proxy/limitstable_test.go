package proxy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Each limit may be what it is by default, is explained, and has a place of
// its own.
func TestLimitsTable(t *testing.T) {
	handbook, err := os.ReadFile("../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	limits := defaultLimits()
	places := map[any]bool{}
	for _, limit := range limits.table() {
		if !strings.Contains(string(handbook), "`limits."+string(limit.name)+"`") {
			t.Errorf("the handbook does not explain limits.%s", limit.name)
		}
		if places[limit.place] {
			t.Errorf("limits.%s has another one's place", limit.name)
		}
		places[limit.place] = true
		cfg, err := parseConfig("f", fmt.Appendf(nil, "upstream: none\nmasters: embedded\nlimits: {%s: %s}", limit.name, limit.text()))
		if err != nil {
			t.Errorf("limits.%s cannot be what it is by default: %v", limit.name, err)
		} else if cfg.Limits != limits {
			t.Errorf("limits.%s: %s is read as %+v", limit.name, limit.text(), cfg.Limits)
		}
	}
}
