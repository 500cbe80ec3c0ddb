package redlock

import (
	"sync"
	"time"
)

// clockWatch finds jumps of a master's clock. A clock that jumps forward ends
// locks before their time, as if the master had forgotten them.
//
// What TIME answered was true at some moment between the question and the
// answer, so it bounds by how much the master's clock is ahead of ours. The
// bounds are kept across connections and widen only as fast as clocks may run
// apart (Config.ClockDrift), so that many small jumps are found like one large:
// over any time t the clock is never further off than the share of t which
// validity takes off a TTL.
type clockWatch struct {
	mu         sync.Mutex
	began      time.Time // local times count from here
	last       time.Duration
	least      time.Duration // the clock is ahead of ours by at least this...
	most       time.Duration // ...and at most this
	calibrated bool
	since      time.Time // when the first bounds were found
}

// clockTolerance is the 2 ms that validity takes off besides the drift.
const clockTolerance = 2 * time.Millisecond

// observe takes one reading: the master's clock stood at server (since 1970)
// between sent and received. It returns by how much the clock has jumped
// forward (positive) or backward (negative), 0 if it has not. A jump is told
// once: the bounds then begin anew.
func (c *clockWatch) observe(sent, received time.Time, server time.Duration, drift float64) (jump time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = sent
	}
	from, to := sent.Sub(c.began), received.Sub(c.began)
	least, most := server-to, server-from
	if !c.calibrated {
		c.calibrated, c.least, c.most, c.last, c.since = true, least, most, to, received
		return 0
	}
	apart := time.Duration(float64(max(0, to-c.last)) * drift)
	c.last = max(c.last, to)
	c.least -= apart
	c.most += apart
	switch {
	case least > c.most+clockTolerance:
		jump = least - c.most
	case most < c.least-clockTolerance:
		jump = most - c.least
	}
	if jump != 0 {
		c.least, c.most = least, most
		return jump
	}
	c.least, c.most = max(c.least, least), min(c.most, most)
	return 0
}

// watchedFor tells for how long this clock has been watched.
func (c *clockWatch) watchedFor(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.since)
}

// forget begins anew, for another server process.
func (c *clockWatch) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calibrated = false
}
