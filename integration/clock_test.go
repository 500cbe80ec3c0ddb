package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// jumpingClock is a wall clock of a server's own, made by libfaketime, that
// can be set while the server runs. A nil one is the machine's clock.
type jumpingClock struct {
	path string // the file that libfaketime reads at each look at the clock
}

func newJumpingClock(t testing.TB) *jumpingClock {
	t.Helper()
	c := &jumpingClock{path: filepath.Join(t.TempDir(), "clock")}
	c.set(t, 0)
	return c
}

// set puts the clock ahead of the machine's by so much.
func (c *jumpingClock) set(t testing.TB, ahead time.Duration) {
	t.Helper()
	next := c.path + ".next" // the server must never read half a number
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+.6f", ahead.Seconds()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, c.path); err != nil {
		t.Fatal(err)
	}
}

// command is how a program that lives by this clock is started.
//
// The library has to come with libc in front of jemalloc, which the Debian
// redis-server uses: jemalloc asks for the time while it starts, and
// libfaketime asks for memory when it is first asked for the time. Only the
// wall clock jumps; timers go by the monotonic one.
func (c *jumpingClock) command(program string) []string {
	if c == nil {
		return []string{program}
	}
	return []string{
		"env", "LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1 libc.so.6", "FAKETIME_TIMESTAMP_FILE=" + c.path,
		"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", program,
	}
}

// ahead asks the server by how much its clock is ahead of the machine's.
func (r *redisServer) ahead(t testing.TB) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before := time.Now()
	now, err := r.direct.Time(ctx).Result()
	if err != nil {
		t.Fatalf("TIME on %s: %v", r.name, err)
	}
	return now.Sub(before)
}

// TestJumpingClock: the faults with clocks are worth something only if a
// server's TIME and the end of its locks follow the jump.
func TestJumpingClock(t *testing.T) {
	r := newRedis(t, "jumping")
	r.clock = newJumpingClock(t)
	r.start(t)
	ctx := t.Context()
	if ahead := r.ahead(t); ahead.Abs() > patience {
		t.Fatalf("the clock is ahead by %s before it was set", ahead)
	}
	if err := r.direct.Set(ctx, "lease", "held", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	r.clock.set(t, 30*time.Minute)
	if ahead := r.ahead(t); ahead < 29*time.Minute || ahead > 31*time.Minute {
		t.Errorf("TIME is ahead by %s after a jump of 30m", ahead)
	}
	if left := r.direct.PTTL(ctx, "lease").Val(); left > 31*time.Minute || left < 29*time.Minute {
		t.Errorf("a key of one hour has %s left after a jump of 30m", left)
	}
	r.clock.set(t, 61*time.Minute)
	if value, ok := r.value(t, "lease"); ok {
		t.Errorf("a key of one hour is still there after a jump of 61m: %q", value)
	}
	r.clock.set(t, -time.Hour)
	if ahead := r.ahead(t); ahead > -59*time.Minute || ahead < -61*time.Minute {
		t.Errorf("TIME is ahead by %s after a jump back to an hour ago", ahead)
	}
}
