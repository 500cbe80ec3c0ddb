package upstream

import (
	"errors"
	"slices"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
)

// tailSize is enough for the integer that ends a confirmation.
const tailSize = 24

// beginning is how many of a value's first bytes always show what it is.
const beginning = 64

// Feed delivers p, the next bytes from the upstream, with the client's writing side locked. p is the
// caller's again when Feed returns. more is false if nothing more may be fed; the caller then
// calls End. A panic is told to the owner, and ends the connection.
func (c *Conn) Feed(p []byte) (more bool) {
	defer c.catch()
	for len(c.kept) > 0 && len(p) > 0 {
		n := min(len(p), beginning)
		c.kept = append(c.kept, p[:n]...)
		p = p[n:]
		used, ok := c.deliverOrStop(c.kept)
		if !ok {
			return false
		}
		c.kept = c.kept[:copy(c.kept, c.kept[used:])]
	}
	if len(p) == 0 {
		return true
	}
	used, more := c.deliverOrStop(p)
	if more {
		c.kept = append(c.kept, p[used:]...)
	}
	return more
}

// catch is deferred. It stops a connection in which there was a panic.
func (c *Conn) catch() {
	if reason := recover(); reason != nil {
		c.stopped = true
		c.options.Events.Panicked(reason)
	}
}

// deliverOrStop is deliver, and tells the owner why nothing more may be fed.
func (c *Conn) deliverOrStop(p []byte) (used int, more bool) {
	used, ok := c.deliver(p)
	switch {
	case !ok:
		c.stopped = true
		c.options.Events.ClientLeft()
	case c.broken != nil:
		c.stopped = true
		c.options.Events.OutOfSync(c.broken)
	}
	return used, !c.stopped
}

// End is called once, after the last Feed. It delivers the bytes that are left, closes the connection
// and tells the owner.
func (c *Conn) End() {
	defer c.options.Events.Ended()
	defer c.options.Task.Unpark()
	defer c.ended.Store(true)
	defer func() { _ = c.conn.Close() }()
	if !c.stopped {
		_ = c.pass(c.kept)
	}
	if c.locked {
		c.locked = false
		c.client.Unlock()
	}
}

// deliver passes on p, the next bytes from the upstream. It leaves bytes at the end of
// p that are too few to tell what value they begin. used is the number of bytes that it
// passed on. ok is false if a write to the client failed.
func (c *Conn) deliver(p []byte) (used int, ok bool) {
	from, at := 0, 0 // p[from:at] is for the client and not yet written
	for at < len(p) {
		if !c.inside {
			if !c.beginPlain(p[at]) {
				to, enough := c.pending.begin(p[at:])
				if !enough {
					break
				}
				if to == unasked {
					c.broken = errUnexpected
					break
				}
				if to != ToClient && from < at {
					if !c.pass(p[from:at]) {
						return at, false
					}
					from = at
				}
				c.to = to
			}
			// Without PushCounts EXEC's reply might never end in a pipe, and would hold the client's write lock.
			c.inside, c.partly, c.scanner.PushCounts = true, false, c.Pipe()
			c.tail = c.tail[:0]
		}
		n, done, err := c.scanner.Scan(p[at:])
		if err != nil {
			c.broken = err
			break
		}
		value := p[at : at+n]
		at += n
		if c.counted {
			if done {
				c.inside = false
				c.answered++
			}
			continue
		}
		c.keepTail(value)
		if c.to == ToOwner {
			c.capture(value)
		}
		if c.to != ToClient {
			from = at
		}
		if done {
			c.inside = false
			if said, confirms := c.pending.end(c.scanner.Kind(), c.tail); confirms {
				c.confirmed = append(c.confirmed, said)
			}
		}
	}
	rest := p[from:at]
	if c.broken != nil && c.inside && !c.partly && c.to == ToClient {
		// The client has no part of the reply yet, so an error can replace it.
		c.inside = false
		rest = append(slices.Clip(rest), wire.ErrUpstreamReply...)
	}
	c.partly = c.inside
	if !c.pass(rest) {
		return at, false
	}
	c.pending.delivered(c.answered)
	c.answered = 0
	return at, true
}

// errUnexpected means that replies and commands are out of sync. The next reply would be
// taken for the answer to a later command.
var errUnexpected = errors.New("a reply that nobody asked for")

// beginPlain begins a value if it is a plain reply, and tells whether it is.
func (c *Conn) beginPlain(first byte) bool {
	c.counted = false
	if c.plain == 0 {
		c.reportAnswered()
		c.plain = c.pending.plain()
	}
	if c.plain == 0 || first == '>' {
		c.reportAnswered()
		return false
	}
	c.plain--
	c.counted, c.to = true, ToClient
	return true
}

func (c *Conn) reportAnswered() {
	if c.answered > 0 {
		c.pending.answered(c.answered)
		c.answered = 0
	}
}

// pass writes bytes to the client. It returns false if the write failed.
func (c *Conn) pass(p []byte) bool {
	var err error
	if len(p) > 0 {
		err = c.client.Append(p)
	}
	for _, said := range c.confirmed {
		c.options.Events.Confirmed(said)
	}
	c.confirmed = c.confirmed[:0]
	return err == nil
}

// unlockBetween unlocks the client's writing side between two values for the client.
func (c *Conn) unlockBetween() {
	if c.locked && (!c.inside || c.to != ToClient) {
		c.locked = false
		c.client.Unlock()
	}
}

func (c *Conn) keepTail(value []byte) {
	if len(value) >= tailSize {
		c.tail = append(c.tail[:0], value[len(value)-tailSize:]...)
		return
	}
	if over := len(c.tail) + len(value) - tailSize; over > 0 {
		c.tail = c.tail[:copy(c.tail, c.tail[over:])]
	}
	c.tail = append(c.tail, value...)
}

func (c *Conn) capture(value []byte) {
	length := len(c.captured) + len(value)
	if c.overflow || int64(length) > c.options.Captures {
		c.overflow = true
		return
	}
	if length > conn.LargeBuffer {
		if !c.options.Memory.Reserve(len(value)) {
			c.overflow = true
			return
		}
		c.charged += len(value)
	}
	c.captured = append(c.captured, value...)
}
