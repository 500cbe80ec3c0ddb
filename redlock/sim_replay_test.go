//go:build !race

package redlock

import (
	"runtime"
	"testing"
)

// The race detector makes the scheduler random, so this holds without it only.
func TestSimulationReplaysASeed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for seed := uint64(1001); seed <= 1010; seed++ {
		first, _ := simulate(t, seed, nil)
		second, _ := simulate(t, seed, nil)
		if first.history.text() != second.history.text() {
			t.Errorf("seed %d ran differently the second time", seed)
		}
	}
}
