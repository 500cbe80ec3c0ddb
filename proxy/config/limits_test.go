package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Each limit's default is in its range. Each limit is explained and has a field of its
// own.
func TestLimitsTable(t *testing.T) {
	handbook, err := os.ReadFile("../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	limits := DefaultLimits()
	places := map[any]bool{}
	for _, limit := range limits.Table() {
		if !strings.Contains(string(handbook), "`limits."+string(limit.Name)+"`") {
			t.Errorf("the handbook does not explain limits.%s", limit.Name)
		}
		if places[limit.place] {
			t.Errorf("limits.%s has another one's place", limit.Name)
		}
		places[limit.place] = true
		cfg, err := parseConfig("f", fmt.Appendf(nil, "upstream: none\nmasters: embedded\nlimits: {%s: %s}", limit.Name, limit.Text()))
		if err != nil {
			t.Errorf("limits.%s cannot be what it is by default: %v", limit.Name, err)
		} else if cfg.Limits != limits {
			t.Errorf("limits.%s: %s is read as %+v", limit.Name, limit.Text(), cfg.Limits)
		}
	}
}
