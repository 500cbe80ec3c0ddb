package faults

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// TestTheProxysClockSteps: somebody sets the clock of the proxy's machine while locks are held. Their TTLs, the
// lights and the masters' states go by clocks that never step. Only EXAT and PXAT, which name a time of day, go by it.
func TestTheProxysClockSteps(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "redlock-proxy-stepping")
	rig.BuildStepping(t, binary)
	c := rig.StartCluster(t, rig.Options{Binary: binary, LogLevel: "info"})
	steady := c.AddProxy(t, rig.Options{})
	stepping, other := c.Proxy.Client(t), steady.Client(t)
	ctx := t.Context()

	// daylight tells whether a lock is held that ends half an hour from now by the clock of this test.
	daylight := func(key string) (held bool) {
		if err := stepping.Do(ctx, "SET", key, "until", "NX", "EXAT", time.Now().Add(rig.ClockStep/2).Unix()).Err(); err != nil {
			t.Fatal(err)
		}
		return stepping.Exists(ctx, key).Val() == 1
	}
	ahead := time.Duration(0) // of the proxy's clock
	for i, to := range []time.Duration{0, rig.ClockStep, 0, -rig.ClockStep, 0} {
		key := fmt.Sprintf("lock:step:%d", i)
		rig.MustAcquire(t, stepping, key, "before", 10*time.Minute)
		if to != ahead {
			c.Proxy.StepClock(to > ahead)
		}
		ahead = to
		rig.WaitFor(t, fmt.Sprintf("the clock is %s ahead", to), func() error {
			held, want := daylight(fmt.Sprintf("lock:daylight:%d:%d", i, time.Now().UnixNano())), to < rig.ClockStep/2
			if held != want {
				return fmt.Errorf("a lock until a time of day is held: %v", held)
			}
			return nil
		})
		if left := stepping.PTTL(ctx, key).Val(); left > 10*time.Minute || left < 10*time.Minute-2*rig.Patience {
			t.Errorf("%s ahead: a lock of ten minutes has %s left", to, left)
		}
		for name, client := range map[string]func(context.Context) (bool, error){
			"the stepping proxy": func(ctx context.Context) (bool, error) { return rig.Acquire(ctx, stepping, key, "thief", time.Minute) },
			"the other proxy":    func(ctx context.Context) (bool, error) { return rig.Acquire(ctx, other, key, "thief", time.Minute) },
		} {
			if taken, err := client(ctx); taken || err != nil {
				t.Errorf("%s ahead: %s grants a lock that is held: %v, %v", to, name, taken, err)
			}
		}
		rig.MustRelease(t, stepping, key, "before")
		rig.MustAcquire(t, other, key, "after", 10*time.Minute)
		for _, master := range c.Masters {
			c.Proxy.WaitState(t, master, "voting")
		}
		if err := c.Proxy.Ready(); err != nil {
			t.Errorf("%s ahead: %v", to, err)
		}
	}
}
