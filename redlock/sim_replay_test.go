//go:build !race

package redlock

import (
	"runtime"
	"testing"
)

// A seed is the same run each time, but for two exceptions: the race detector
// makes the scheduler random, so this is not built with it, and a machine so
// busy that a goroutine is preempted may change the order of two that were to
// run at the same moment. So one of a few repetitions has to be the same.
func TestSimulationReplaysASeed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := uint64(1001); seed <= 1008; seed++ {
		seen := map[string]bool{}
		for range 5 {
			s, _ := simulate(t, seed, nil)
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
