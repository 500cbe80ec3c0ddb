package shared

import (
	"bytes"
	"errors"
)

// readOnly begins the reply of a server that has become a replica. Clients then connect again,
// and must reach the server that is the master now.
var readOnly = []byte("-READONLY")

// errUnasked means that replies and commands are out of sync.
var errUnasked = errors.New("a reply that nobody asked for")

// take is feed, and tells the owners if something is wrong. It returns false if the connection must
// end.
func (c *connection) take(p []byte) (more bool) {
	defer c.catch()
	if wrong := c.feed(p); wrong != nil {
		c.pool.outOfSync(wrong)
		return false
	}
	for _, m := range c.fed() {
		m.isUnread()
	}
	return true
}

// fed notes where reading has stopped, if a member is full. It returns those to be ended.
func (c *connection) fed() []*Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = c.turn
	return c.tooSlow()
}

// feed delivers p, the next bytes from the server. An error means that nothing more may be fed.
func (c *connection) feed(p []byte) error {
	from, begun, ended := 0, 0, 0 // p[from:begun] has so many whole replies of this turn
	for at := 0; at < len(p); {
		if !c.inside {
			begun = at
			if c.push = p[at] == '>'; c.push || c.turn.count == 0 {
				c.pass(p[from:at], ended)
				from, ended = at, 0
			}
			if !c.push && c.turn.count == 0 && !c.takeTurn() {
				return errUnasked
			}
			c.inside = true
			if bytes.HasPrefix(p[at:], readOnly) && !c.stale.Load() {
				c.pool.leave(c.server)
			}
		}
		n, done, err := c.scanner.Scan(p[at:])
		if err != nil {
			c.inside = false
			c.pass(p[from:begun], ended)
			return err
		}
		at += n
		switch {
		case !done:
		case c.push: // nobody gets it
			c.inside, from = false, at
		default:
			c.inside = false
			c.turn.count--
			ended++
		}
	}
	if c.push && c.inside {
		return nil
	}
	c.pass(p[from:], ended)
	return nil
}

// takeTurn begins the next turn, if there is one.
func (c *connection) takeTurn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head == len(c.queue) {
		return false
	}
	c.turn = c.queue[c.head]
	c.queue[c.head] = turn{}
	c.head++
	return true
}

// pass gives bytes of the current turn to its member, with the number of replies that end in
// them. The client's writing side stays locked until the value has ended.
func (c *connection) pass(p []byte, ended int) {
	m := c.turn.of
	if m == nil || len(p) == 0 {
		return
	}
	c.owed.Add(-int64(ended))
	if c.turn.silent || m.gone.Load() {
		p = nil
	}
	if m.behind.Load() || len(p) > 0 && !m.mayAppend() {
		c.putAside(m, p, ended)
		return
	}
	var err error
	if len(p) > 0 {
		err = m.client.Append(p)
	}
	if !c.inside {
		m.unlock()
	}
	m.answered(ended)
	if err != nil {
		m.clientLeft()
	}
}

// end fails every member with replies missing. It may be called again.
func (c *connection) end() {
	_ = c.sock.Close()
	for _, m := range c.unanswered() {
		m.unlock()
		m.breaks()
	}
}

// unanswered ends the connection. It returns the members that fail now. Those that are behind get
// what came, and fail then.
func (c *connection) unanswered() (now []*Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over.Swap(true) {
		return nil
	}
	for _, t := range append(c.queue[c.head:], c.turn) {
		if !c.misses(t) || t.of.broken {
			continue
		}
		if t.of.broken = true; !t.of.behind.Load() {
			now = append(now, t.of)
		}
	}
	c.queue, c.head, c.out = nil, 0, nil
	c.changed.Broadcast()
	return now
}

// misses tells whether the member of a turn will not get all its replies. After a panic in
// feeding, the last reply of a turn may be counted and not given.
func (c *connection) misses(t turn) bool {
	return t.count > 0 || t.of != nil && t.of.conn.Load() == c && !t.of.Drained() && !t.of.behind.Load()
}
