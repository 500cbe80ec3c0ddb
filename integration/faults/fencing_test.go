package faults

import (
	"testing"
	"time"

	"redlock-proxy/integration/history"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestHolderThatPausesIsFencedOff: a client pauses for longer than its lease and then
// writes as if it still held the lock. No lock service can stop that write. The resource
// can, with the fencing tokens that the holders were given.
func TestHolderThatPausesIsFencedOff(t *testing.T) {
	t.Parallel()
	c := rig.StartCluster(t, rig.Options{})
	first, second := c.Proxy.Client(t), c.AddProxy(t, rig.Options{}).Client(t)
	resource := &history.Register{Key: "lock:fenced"}
	const lease = 2 * time.Second // leaves time for a token
	token := func(client *redis.Client, value string) int64 {
		t.Helper()
		n, err := client.Do(t.Context(), "REDLOCK", "TOKEN", "lock:fenced", value).Int64()
		if err != nil {
			t.Fatalf("%s gets no token: %v", value, err)
		}
		return n
	}

	asked := time.Now()
	rig.MustAcquire(t, first, "lock:fenced", "token-of-the-sleeper", lease)
	sleeper := resource.EnterWith(token(first, "token-of-the-sleeper"), 1, "token-of-the-sleeper", asked.Add(lease-history.LostToDrift(lease)))
	rig.MustAcquire(t, second, "lock:fenced", "token-of-the-next-one", rig.LongTTL) // granted after the first lease has ended
	next := resource.EnterWith(token(second, "token-of-the-next-one"), 2, "token-of-the-next-one", time.Now().Add(rig.LongTTL/2))
	resource.Write(next)
	resource.Write(sleeper)
	if resource.Writes != 1 || resource.Fenced != 1 || len(resource.Breaches) > 0 {
		t.Errorf("%d writes, %d fenced off, breaches %v; want one, one and none", resource.Writes, resource.Fenced, resource.Breaches)
	}
	rig.MustRelease(t, second, "lock:fenced", "token-of-the-next-one")
}
