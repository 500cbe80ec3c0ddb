package main

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/layer"
)

// Every section runs for a moment and produces figures. The test does not look at their
// values, which mean nothing here.
func TestEverySectionYieldsFigures(t *testing.T) {
	layer.Only(t, layer.Long, "takes long")
	b := &bench{
		rounds: 1, length: 50 * time.Millisecond, progress: t.Output(),
		idleClients: 50, forwardedIdleClients: 20, largeReply: 2 << 20, largeValues: 3, contenders: 20, heldLocks: 1_000, masterTimeout: generousTimeout, patience: 0,
	}
	if err := b.run(regexp.MustCompile("")); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range b.rows {
		seen[r.section] = true
		if len(r.measured) == 0 && r.figures == "" {
			t.Errorf("%s, %s: no measurement, and no reason why not", r.section, r.what)
		}
		for _, value := range r.measured {
			if math.IsNaN(value) || math.IsInf(value, 0) {
				t.Errorf("%s, %s: %v", r.section, r.what, value)
			}
		}
	}
	for _, name := range sectionNames() {
		if !seen[name] {
			t.Errorf("section %s adds nothing to the table", name)
		}
	}
	var text, markdown strings.Builder
	printText(&text, b.rows)
	printMarkdown(&markdown, b.rows)
	t.Logf("%s\n%s", machine(), &text)
	if lines := strings.Count(markdown.String(), "\n"); lines != len(b.rows)+2 {
		t.Errorf("the table in Markdown has %d lines for %d rows", lines, len(b.rows))
	}
}

func TestMedianOfRounds(t *testing.T) {
	for _, c := range []struct {
		of   spread
		want float64
	}{
		{nil, 0}, {spread{3}, 3}, {spread{4, 1}, 2.5}, {spread{9, 1, 2}, 2},
	} {
		if got := c.of.median(); got != c.want {
			t.Errorf("the median of %v is %v, want %v", c.of, got, c.want)
		}
	}
}
