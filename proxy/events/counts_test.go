package events

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// What is counted for each message and each refusal takes no memory.
func TestCountsTakeNoMemory(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	count := func() {
		m.WokenUp(2, 1)
		m.Refused("CROSSLOCK")
		m.Refused("NOTCOUNTED")
	}
	count()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if name := family.GetName(); name == "redlock_wakeups_total" || name == "redlock_refused_commands_total" {
			for _, series := range family.GetMetric() {
				got[series.GetLabel()[0].GetValue()] = series.GetCounter().GetValue()
			}
		}
	}
	if want := (map[string]float64{"message": 2, "invalidation": 1, "crosslock": 1, "tryagain": 0, "noupstream": 0}); !maps.Equal(got, want) {
		t.Errorf("counted: %v, want %v", got, want)
	}
	if n := testing.AllocsPerRun(100, count); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
