package shared

import (
	"bytes"
	"errors"
	"time"
)

// readAtOnce is the size of the reader's buffer.
const readAtOnce = 64 << 10

// read is the reader. It gives each reply to its member, until the connection ends.
func (c *connection) read() {
	defer close(c.done)
	defer c.end()
	c.contain(c.readAll)
}

func (c *connection) readAll() {
	buf := make([]byte, readAtOnce)
	for {
		n, err := c.sock.Read(buf)
		if wrong := c.feed(buf[:n]); wrong != nil {
			c.outOfSync(wrong)
			return
		}
		if err != nil {
			return
		}
	}
}

// readOnly begins the reply of a server that has become a replica. Clients then connect again,
// and must reach the server that is the master now.
var readOnly = []byte("-READONLY")

// youth is the time in which READONLY does not make a connection stale, so that an upstream that
// always replies so is not dialled with each command.
const youth = time.Second

// errUnasked means that replies and commands are out of sync.
var errUnasked = errors.New("a reply that nobody asked for")

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
			if bytes.HasPrefix(p[at:], readOnly) && time.Since(c.began) > youth {
				c.stale.Store(true)
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
	c.turns++
	return true
}

// pass writes bytes of the current turn to its client, and reports replies that have ended. It
// keeps the writing side locked until the value has ended.
func (c *connection) pass(p []byte, ended int) {
	m := c.turn.of
	if m == nil || len(p) == 0 {
		return
	}
	var err error
	if !c.turn.silent && c.beginSending(m) {
		if !c.locked {
			m.client.Lock()
			c.locked = true
		}
		_, err = m.client.Write(p)
	}
	c.unlock()
	c.mu.Lock()
	c.sending = nil
	c.owed -= ended
	c.passed += len(p)
	if left := m.pending.Add(-int64(ended)); left == 0 && ended > 0 {
		m.signal()
	}
	if m.gone.Load() {
		c.changed.Broadcast()
	}
	c.mu.Unlock()
	if err != nil && !m.gone.Swap(true) {
		m.fail()
		m.owner.ClientLeft()
	}
}

// unlock unlocks the client's writing side unless a value is inside.
func (c *connection) unlock() {
	if c.locked && !c.inside {
		c.locked = false
		c.turn.of.client.Unlock()
	}
}

func (c *connection) beginSending(m *Member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.gone.Load() {
		return false
	}
	c.sending = m
	return true
}

// end fails every member with replies pending.
func (c *connection) end() {
	_ = c.sock.Close()
	c.inside = false
	c.unlock()
	c.mu.Lock()
	c.over.Store(true)
	failed := map[*Member]bool{}
	for _, t := range append(c.queue[c.head:], c.turn) {
		if t.of != nil && t.of.conn.Load() == c && !t.of.Drained() { // the last one may have moved on
			failed[t.of] = true
		}
	}
	c.queue, c.head, c.out, c.sending = nil, 0, nil, nil
	c.changed.Broadcast()
	c.mu.Unlock()
	for m := range failed {
		m.fail()
		m.owner.Broken()
	}
}
