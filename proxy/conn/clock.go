package conn

import (
	"sync/atomic"
	"time"
)

// A Clock is a cheap, coarse time shared by all sessions. The server's sweep advances
// it, so the data path needs neither the system's clock nor timers.
type Clock struct{ nanoseconds atomic.Int64 }

// Now is the time of the last Advance, in nanoseconds.
func (c *Clock) Now() int64 { return c.nanoseconds.Load() }

// Advance sets the time, in nanoseconds.
func (c *Clock) Advance(to int64) { c.nanoseconds.Store(to) }

// Since is the time that has passed since then, a result of Now.
func (c *Clock) Since(then int64) time.Duration { return time.Duration(c.Now() - then) }
