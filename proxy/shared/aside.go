package shared

import "slices"

// mostAside bounds the bytes put aside for a member. While there are more, nothing is read.
const mostAside = 64 << 10

// mayAppend tells whether the client takes more now, and locks its writing side.
func (m *Member) mayAppend() bool {
	return !m.client.IsFull() && m.lock()
}

func (m *Member) lock() bool {
	m.locked = m.locked || m.client.TryLock()
	return m.locked
}

func (m *Member) unlock() {
	if m.locked {
		m.locked = false
		m.client.Unlock()
	}
}

// putAside keeps bytes for a client that cannot be written to at once. A goroutine writes them.
// They have been read, so they are kept also if there is no memory for them. Then nothing more is
// read before they are written.
func (c *connection) putAside(m *Member, p []byte, ended int) {
	tooMuch := len(p) > 0 && !c.pool.memory.HasRoom(len(p))
	c.mu.Lock()
	defer c.mu.Unlock()
	before := cap(m.aside)
	m.aside = append(m.aside, p...)
	m.charged += cap(m.aside) - before
	c.pool.memory.Use(cap(m.aside) - before)
	m.ended += ended
	m.inside = c.inside
	if len(m.aside) > mostAside {
		tooMuch = true
		m.slow.Store(true)
	}
	if tooMuch && !slices.Contains(c.full, m) {
		c.full = append(c.full, m)
	}
	if !m.behind.Swap(true) {
		go c.catchUp(m)
	}
}

// catchUp writes the replies that were put aside for a member, until none are left. Member.Close
// waits for it.
func (c *connection) catchUp(m *Member) {
	defer func() {
		if reason := recover(); reason != nil {
			m.gone.Store(true) // what was put aside is lost, so nothing may follow it
			c.defect(reason)
			c.dropAside(m)
			m.breaks()
		}
	}()
	var p []byte
	for {
		next, ended, inside, more := c.takeAside(m, p)
		if !more {
			return
		}
		m.write(next, inside)
		m.answered(ended)
		c.wrote(m, len(next))
		p = next
	}
}

// write writes what was put aside. inside: a value goes on behind it.
func (m *Member) write(p []byte, inside bool) {
	if len(p) > 0 && !m.gone.Load() {
		if !m.locked {
			m.client.Lock()
			m.locked = true
		}
		if _, err := m.client.Write(p); err != nil {
			m.clientLeft()
		}
	}
	if !inside {
		m.unlock()
	}
}

// takeAside returns what was put aside. If there is nothing, the member is not behind any more.
// unused may be used again.
func (c *connection) takeAside(m *Member, unused []byte) (p []byte, ended int, inside, more bool) {
	c.mu.Lock()
	if len(m.aside)+m.ended > 0 {
		defer c.mu.Unlock()
		p, ended, inside = m.aside, m.ended, m.inside
		m.aside, m.ended = unused[:0], 0
		return p, ended, inside, true
	}
	broken := m.broken
	if broken {
		m.unlock()
	}
	c.caughtUp(m)
	c.mu.Unlock()
	if broken {
		m.breaks()
	}
	return nil, 0, false, false
}

func (c *connection) caughtUp(m *Member) {
	c.pool.memory.Release(m.charged)
	m.aside, m.ended, m.charged = nil, 0, 0
	m.behind.Store(false)
	c.changed.Broadcast()
}

// dropAside forgets what was put aside.
func (c *connection) dropAside(m *Member) {
	m.unlock()
	c.mu.Lock()
	c.caughtUp(m)
	c.mu.Unlock()
	c.wrote(m, 0)
}

// wrote is called when n bytes that were put aside are written. Then there is room for more.
func (c *connection) wrote(m *Member, n int) {
	c.mu.Lock()
	at := slices.Index(c.full, m)
	if at == 0 {
		c.taken += n
	}
	if at >= 0 {
		c.full = slices.Delete(c.full, at, at+1)
		c.changed.Broadcast()
	}
	goOn := at >= 0 && len(c.full) == 0
	c.mu.Unlock()
	if goOn {
		c.pool.loop.Do(c.goOn)
	}
}

// relieve resumes reading if it stopped for lack of memory and there is memory again. The watch
// calls it.
func (c *connection) relieve() {
	if !c.pool.memory.HasRoom(mostAside) {
		return
	}
	c.mu.Lock()
	before := len(c.full)
	c.full = slices.DeleteFunc(c.full, func(m *Member) bool { return len(m.aside) <= mostAside })
	c.changed.Broadcast()
	goOn := before > 0 && len(c.full) == 0
	c.mu.Unlock()
	if goOn {
		c.pool.loop.Do(c.goOn)
	}
}

// awaitCaughtUp returns when nothing is written to the member's client any more.
func (c *connection) awaitCaughtUp(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for m.behind.Load() {
		c.changed.Wait()
	}
}
