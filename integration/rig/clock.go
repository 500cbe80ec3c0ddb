package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Clock is the wall clock of one server. libfaketime provides it, and a test can set it
// while the server runs. A nil Clock is the machine's clock.
type Clock struct {
	path string // libfaketime reads this file whenever the server asks for the time
}

func NewClock(t testing.TB) *Clock {
	t.Helper()
	c := &Clock{path: filepath.Join(t.TempDir(), "clock")}
	c.Set(t, 0)
	return c
}

// Set puts the clock ahead of the machine's clock by the given time.
func (c *Clock) Set(t testing.TB, ahead time.Duration) {
	t.Helper()
	next := c.path + ".next" // the rename below is atomic: the server never reads half a number
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+.6f", ahead.Seconds()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, c.path); err != nil {
		t.Fatal(err)
	}
}

// command returns the words that start a program with this clock.
//
// LD_PRELOAD must name libc too, in front of jemalloc, which the Debian redis-server
// uses. jemalloc asks for the time while it starts, and libfaketime asks for memory when
// it is first asked for the time. Only the wall clock jumps. Timers use the monotonic
// clock, which does not.
func (c *Clock) command(program string) []string {
	if c == nil {
		return []string{program}
	}
	return []string{
		"env", "LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1 libc.so.6", "FAKETIME_TIMESTAMP_FILE=" + c.path,
		"FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", program,
	}
}

// Ahead asks the server for its time and returns how far its clock is ahead of the
// machine's.
func (r *Server) Ahead(t testing.TB) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	before := time.Now()
	now, err := r.Direct.Time(ctx).Result()
	if err != nil {
		t.Fatalf("TIME on %s: %v", r.Name, err)
	}
	return now.Sub(before)
}
