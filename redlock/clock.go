package redlock

import (
	"sync"
	"time"

	"redlock-proxy/redlock/roster"
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

// observe takes one reading: the master's clock stood at server (since 1970)
// between sent and received. It returns the jump that this shows, and whether
// this machine was suspended in between. A jump is told once: the bounds then
// begin anew.
func (c *clockWatch) observe(sent moment, received time.Time, server time.Duration, drift float64, s *slumber) (by roster.Jump, slept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = sent.at
	}
	read := moment{received, s.last()}
	by = c.compare(sent, read, server, drift)
	if by != (roster.Jump{}) { // perhaps it was this machine that was suspended
		read.slept = s.look()
		by = c.compare(sent, read, server, drift)
	}
	from, to := sent.since(c.began), read.since(c.began)
	least, most := server-to, server-from
	switch {
	case !c.calibrated:
		c.calibrated, c.least, c.most, c.since = true, least, most, received
	case by != (roster.Jump{}):
		c.least, c.most = least, most
	default:
		apart := c.apart(to, drift)
		c.least, c.most = max(c.least-apart, least), min(c.most+apart, most)
	}
	c.last = max(c.last, to)
	return by, read.slept != sent.slept
}

// compare tells, with mu held, which jump a reading would show.
func (c *clockWatch) compare(sent, received moment, server time.Duration, drift float64) roster.Jump {
	from, to := sent.since(c.began), received.since(c.began)
	apart := c.apart(to, drift)
	by := roster.Jump{Least: server - to - c.most - apart, Most: server - from - c.least + apart}
	if !c.calibrated || by.Least <= roster.ClockTolerance && by.Most >= -roster.ClockTolerance {
		return roster.Jump{}
	}
	return by
}

// apart is, with mu held, by how much the clocks may have run apart since the last
// reading.
func (c *clockWatch) apart(to time.Duration, drift float64) time.Duration {
	return time.Duration(float64(max(0, to-c.last)) * drift)
}

// A moment is a time of the monotonic clock, which stands still while the machine
// is suspended, and for how long it had been suspended by then.
type moment struct {
	at    time.Time
	slept time.Duration
}

// since counts the time that the machine was suspended.
func (m moment) since(began time.Time) time.Duration { return m.at.Sub(began) + m.slept }

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

// leastAt is a time, since 1970, that the master's clock has reached by now.
func (c *clockWatch) leastAt(now moment) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.since(c.began) + c.least
}
