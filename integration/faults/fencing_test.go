package faults

import (
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"
)

// TestHolderThatPausesIsFencedOff: a client pauses for longer than its lease and then
// writes as if it still held the lock. No lock service can stop that write. The resource
// can, with a fence.
func TestHolderThatPausesIsFencedOff(t *testing.T) {
	c := rig.StartCluster(t, rig.Options{})
	first, second := c.Proxy.Client(t), c.AddProxy(t, rig.Options{}).Client(t)
	resource := &history.Register{Key: "lock:fenced"}
	const lease = 500 * time.Millisecond

	asked := time.Now()
	rig.MustAcquire(t, first, "lock:fenced", "token-of-the-sleeper", lease)
	sleeper := resource.Enter(1, "token-of-the-sleeper", asked.Add(lease-history.LostToDrift(lease)))
	rig.MustAcquire(t, second, "lock:fenced", "token-of-the-next-one", rig.LongTTL) // granted after the first lease has ended
	next := resource.Enter(2, "token-of-the-next-one", time.Now().Add(rig.LongTTL/2))
	resource.Write(next)
	resource.Write(sleeper)
	if resource.Writes != 1 || resource.Fenced != 1 || len(resource.Breaches) > 0 {
		t.Errorf("%d writes, %d fenced off, breaches %v; want one, one and none", resource.Writes, resource.Fenced, resource.Breaches)
	}
	rig.MustRelease(t, second, "lock:fenced", "token-of-the-next-one")
}
