//go:build !race

package redlock

import (
	"runtime"
	"testing"
)

// A seed gives the same run each time, with two exceptions. The race detector makes the
// scheduler random, so this file is not built with it. A busy machine may preempt a
// goroutine and change the order of two that run at the same moment. So only one of a few
// repetitions must be the same.
func TestSimulationReplaysASeed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := uint64(1001); seed <= 1008; seed++ {
		seen := map[string]bool{}
		for range 5 {
			s, _ := simulate(t, seed, false, nil)
			text := s.history.text()
			if seen[text] {
				seen = nil
				break
			}
			seen[text] = true
		}
		if seen != nil {
			t.Errorf("seed %d ran differently each time", seed)
		}
	}
}
