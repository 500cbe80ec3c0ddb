//go:build !race

package proxy

import (
	"testing"

	"redlock-proxy/proxy/wire"
)

// TestForwardingDoesNotAllocate counts in the whole process: session, loop,
// and the test's own client and upstream. The race detector makes pools drop what they hold.
func TestForwardingDoesNotAllocate(t *testing.T) {
	for _, pipeline := range []int{1, 16} {
		for command, reply := range map[string]string{benchGet: benchValue, benchSet: wire.OK} {
			for _, shares := range []bool{false, true} {
				client := newPipeliner(t, command, reply, pipeline, shares)
				client.turn(t)
				if n := testing.AllocsPerRun(200, func() { client.turn(t) }); n != 0 {
					t.Errorf("%d times %q, shared %v: %v allocations", pipeline, command, shares, n)
				}
			}
		}
	}
}

func TestAllocationsOfLockCommands(t *testing.T) {
	for _, command := range benchLockCommands {
		s := repeating(t, command.line)
		if n := testing.AllocsPerRun(200, s.step); n != command.allocations {
			t.Errorf("%s: %v allocations, want %v", command.line, n, command.allocations)
		}
	}
}
