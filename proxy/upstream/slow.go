package upstream

import (
	"slices"
	"time"
)

const (
	// watchEvery is the pause between two looks of the watch.
	watchEvery = 100 * time.Millisecond
	// mostDelay is how long the slow clients of a connection, all together, may delay others. The
	// time counts for delayEnds times as long.
	mostDelay = time.Second
	delayEnds = 10
	// A client that takes readsFast bytes between two looks reads fast.
	readsFast = 1 << 20
)

// A congestion is what slow clients do to a connection. Only the loop uses it.
type congestion struct {
	full  []*Member     // much waits for these, so nothing is read
	taken int           // bytes that full[0] has taken after it had become full
	had   int           // the same at the watch's last look
	delay time.Duration // for which slow clients have delayed others lately
}

// stopFor stops reading until the member's client has taken what waits for it.
func (c *Conn) stopFor(m *Member) {
	if slices.Contains(c.full, m) || !m.client.to.WhenDrained(mostUnread, func() { c.goOn(m) }) {
		return
	}
	m.waited = m.client.to.Waiting()
	m.slow.Store(true)
	c.full = append(c.full, m)
	c.sock.Pause()
}

func (c *Conn) goOn(m *Member) {
	if c.full[0] == m {
		c.taken += m.waited
	}
	c.full = slices.DeleteFunc(c.full, func(other *Member) bool { return other == m })
	if len(c.full) == 0 {
		c.sock.Resume()
	}
}

// endSlow ends the members for which others have waited for too long.
func (c *Conn) endSlow() {
	if c.delay < mostDelay || !c.othersWait() {
		return
	}
	for _, m := range slices.Clone(c.full) {
		m.isUnread()
	}
}

// countDelay counts the time for which slow clients delay others. The watch calls it.
func (c *Conn) countDelay() {
	reads := c.taken-c.had >= readsFast
	c.had = c.taken
	if reads || !c.othersWait() {
		c.delay = max(c.delay-watchEvery/delayEnds, 0)
		return
	}
	c.delay = min(c.delay, mostDelay) + watchEvery
	c.endSlow()
}

// othersWait tells whether reading has stopped, and replies are missing that somebody else still
// wants.
func (c *Conn) othersWait() bool {
	if len(c.full) == 0 {
		return false
	}
	waits := func(t turn) bool { return t.of != nil && !t.of.gone.Load() && !slices.Contains(c.full, t.of) }
	c.mu.Lock()
	defer c.mu.Unlock()
	return waits(c.turn) || slices.ContainsFunc(c.queue.waiting(), waits)
}
