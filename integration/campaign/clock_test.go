package campaign

import (
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// TestJumpingClock: the faults with clocks mean something only if a server's TIME and the
// expiry of its locks follow the jump.
func TestJumpingClock(t *testing.T) {
	r := rig.NewServer(t, "jumping")
	r.Clock = rig.NewClock(t)
	r.Start(t)
	ctx := t.Context()
	if ahead := r.Ahead(t); ahead.Abs() > rig.Patience {
		t.Fatalf("the clock is ahead by %s before it was set", ahead)
	}
	if err := r.Direct.Set(ctx, "lease", "held", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	r.Clock.Set(t, 30*time.Minute)
	if ahead := r.Ahead(t); ahead < 29*time.Minute || ahead > 31*time.Minute {
		t.Errorf("TIME is ahead by %s after a jump of 30m", ahead)
	}
	if left := r.Direct.PTTL(ctx, "lease").Val(); left > 31*time.Minute || left < 29*time.Minute {
		t.Errorf("a key of one hour has %s left after a jump of 30m", left)
	}
	r.Clock.Set(t, 61*time.Minute)
	if value, ok := r.Value(t, "lease"); ok {
		t.Errorf("a key of one hour is still there after a jump of 61m: %q", value)
	}
	r.Clock.Set(t, -time.Hour)
	if ahead := r.Ahead(t); ahead > -59*time.Minute || ahead < -61*time.Minute {
		t.Errorf("TIME is ahead by %s after a jump back to an hour ago", ahead)
	}
}
