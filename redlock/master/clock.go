package master

import (
	"sync"
	"time"

	"redlock-proxy/redlock/roster"
)

// clockWatch finds jumps of a master's clock. A clock that jumps forward ends locks too
// early, as if the master had forgotten them.
//
// The answer to TIME was true at some moment between the question and the answer. So it
// bounds how far the master's clock is ahead of ours. The watch keeps the bounds across
// connections. It widens them only as fast as clocks may run apart (Config.ClockDrift).
// So it finds many small jumps like one large jump. Over any time t, the error of the
// clock never exceeds the share of t that validity subtracts from a TTL.
type clockWatch struct {
	mu         sync.Mutex
	run        string    // the server process whose clock it is
	began      time.Time // local times are counted from here
	last       time.Duration
	least      time.Duration // the clock is ahead of ours by at least this...
	most       time.Duration // ...and at most this
	calibrated bool
	since      time.Time // when the first bounds of this server process were found
}

// observe takes one reading. The master's clock showed server (since 1970) at some moment
// between sent and received. observe returns the jump that this shows, and whether this
// machine was suspended in between. It reports a jump once, and then begins with new
// bounds.
func (c *clockWatch) observe(sent moment, received time.Time, server time.Duration, drift float64, s *slumber) (by roster.Jump, slept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began = sent.at
	}
	read := moment{received, s.last()}
	by = c.compare(sent, read, server, drift)
	if by != (roster.Jump{}) { // perhaps this machine was suspended
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

// compare returns, with mu held, the jump that a reading would show. It returns the zero
// Jump if there is none.
func (c *clockWatch) compare(sent, received moment, server time.Duration, drift float64) roster.Jump {
	from, to := sent.since(c.began), received.since(c.began)
	apart := c.apart(to, drift)
	by := roster.Jump{Least: server - to - c.most - apart, Most: server - from - c.least + apart}
	if !c.calibrated || by.Least <= roster.ClockTolerance && by.Most >= -roster.ClockTolerance {
		return roster.Jump{}
	}
	return by
}

// apart returns, with mu held, how far the clocks may have run apart since the last
// reading.
func (c *clockWatch) apart(to time.Duration, drift float64) time.Duration {
	return time.Duration(float64(max(0, to-c.last)) * drift)
}

// A moment is a time of the monotonic clock with the time that the machine had been
// suspended by then. The monotonic clock stands still while the machine is suspended.
type moment struct {
	at    time.Time
	slept time.Duration
}

// since returns the time from began to m, with the time that the machine was suspended.
func (m moment) since(began time.Time) time.Duration { return m.at.Sub(began) + m.slept }

// watchedFor returns how long this clock has been watched.
func (c *clockWatch) watchedFor(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.since)
}

// isOf drops the bounds if they are of another server process. That may run on another machine, with another clock.
func (c *clockWatch) isOf(run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calibrated = c.calibrated && c.run == run
	c.run = run
}

// leastAt returns a time, since 1970, that the master's clock has certainly reached at
// now.
func (c *clockWatch) leastAt(now moment) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.since(c.began) + c.least
}

// ahead returns by how much the master's clock is ahead of this machine's, and the largest
// error of that. within is 0 if the clock was not read yet.
func (c *clockWatch) ahead(now moment) (by, within time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.calibrated {
		return 0, 0
	}
	ours := time.Duration(now.at.UnixNano()) - now.since(c.began)
	return c.least + (c.most-c.least)/2 - ours, max((c.most-c.least)/2, time.Microsecond)
}
