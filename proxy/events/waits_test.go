package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The series of a rule with a wait exist from 0. The gauge goes with the rule, also while
// an acquire still waits.
func TestWaitsAreShownByRule(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	want := func(want string) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, family := range families {
			for _, series := range family.GetMetric() {
				switch rule := series.GetLabel(); family.GetName() {
				case "redlock_waiting_acquires":
					got = append(got, fmt.Sprint(rule[0].GetValue(), " ", series.GetGauge().GetValue()))
				case "redlock_wait_duration_seconds":
					got = append(got, fmt.Sprint(rule[1].GetValue(), " ", rule[0].GetValue(), " ", series.GetHistogram().GetSampleCount()))
				}
			}
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	m.ShowSettings(Configured{Rules: []string{"a", "b"}, Waiting: []string{"a"}})
	want("[a error 0 a gone 0 a granted 0 a refused 0 a 0]")
	ended, late := m.Waits("a"), m.Waits("a")
	want("[a error 0 a gone 0 a granted 0 a refused 0 a 2]")
	ended(WaitGranted, time.Second)
	want("[a error 0 a gone 0 a granted 1 a refused 0 a 1]")
	m.ShowSettings(Configured{Rules: []string{"b"}})
	want("[]")
	late(WaitGone, time.Second)
	want("[a gone 1]")
}
