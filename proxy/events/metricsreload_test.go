package events

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// reloading returns metrics and a function that shows a new configuration with so many rules.
func reloading(t testing.TB, rules int) (reload func()) {
	m, err := NewMetrics(prometheus.NewRegistry(), Names{Build: []string{"", "", ""}, Verdicts: []string{"granted", "refused", "undecided", "error"}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range rules {
		names = append(names, fmt.Sprintf("lock:%d:*", i))
	}
	return func() { m.ShowSettings(Configured{Rules: names}) }
}

// Twice the rules cost a reload twice as much, not four times.
func TestAReloadCostsByTheNumberOfRules(t *testing.T) {
	bytes := func(rules int) uint64 {
		reload := reloading(t, rules)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		reload()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := bytes(100), bytes(200); many > 3*few {
		t.Errorf("a reload with 100 rules allocates %d bytes, one with 200 rules %d", few, many)
	}
}

func BenchmarkReload(b *testing.B) {
	reload := reloading(b, 500)
	for b.Loop() {
		reload()
	}
}
