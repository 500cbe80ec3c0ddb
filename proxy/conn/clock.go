package conn

import (
	"sync/atomic"
	"time"
)

// A Clock is a cheap, coarse time shared by all sessions: the server's sweep
// moves it, so that the data path needs no system clock and no timers.
type Clock struct{ nanoseconds atomic.Int64 }

// Now is the time that Advance told last, in nanoseconds.
func (c *Clock) Now() int64 { return c.nanoseconds.Load() }

// Advance moves the clock.
func (c *Clock) Advance(to int64) { c.nanoseconds.Store(to) }

// Since is how much time has passed since Now was then.
func (c *Clock) Since(then int64) time.Duration { return time.Duration(c.Now() - then) }
