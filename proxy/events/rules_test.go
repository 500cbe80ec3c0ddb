package events

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The series of all rules exist from 0, and those of a rule that a reload deletes go.
func TestContentionIsShownByRule(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry, Names{Build: []string{"", "", ""}})
	if err != nil {
		t.Fatal(err)
	}
	m.ShowSettings(Configured{Rules: []string{"lock:*", "job:*"}})
	m.LockWaited("lock:*", 20*time.Millisecond)
	m.LockHeld("lock:*", 20*time.Second)
	for name, sum := range map[string]string{"redlock_lock_wait_seconds": "sample_sum:0.02", "redlock_lock_hold_seconds": "sample_sum:20"} {
		got := gathered(t, registry, name)
		for _, want := range []string{`value:"job:*"} histogram:{sample_count:0`, `value:"lock:*"} histogram:{sample_count:1 ` + sum} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %s", want, got)
			}
		}
	}
	m.ShowSettings(Configured{Rules: []string{"job:*"}})
	for _, name := range []string{"redlock_lock_wait_seconds", "redlock_lock_hold_seconds"} {
		if got := gathered(t, registry, name); strings.Contains(got, "lock:*") || !strings.Contains(got, "job:*") {
			t.Errorf("after the reload: %s", got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { m.LockWaited("job:*", time.Second); m.LockHeld("job:*", time.Second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
