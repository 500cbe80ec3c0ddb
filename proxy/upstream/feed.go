package upstream

import (
	"bytes"
	"errors"
	"slices"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// tailSize is enough for the integer that ends a confirmation.
const tailSize = 24

// readOnly begins the reply of a server that has become a replica. Clients then connect again,
// and must reach the server that is the master now.
var readOnly = []byte("-READONLY")

// errUnasked means that replies and commands are out of sync. The next reply would be taken for the
// answer to a later command.
var errUnasked = errors.New("a reply that nobody asked for")

// A feeder takes the server's bytes apart and gives each value to its member. Only the loop uses it.
type feeder struct {
	scanner resp.Scanner
	kept    []byte // too few to tell what value they begin

	turn   turn        // its values come now
	inside bool        // a value has begun and not ended
	to     *Member     // gets the value
	as     Destination // of the value
	partly bool        // its client has a part of the value

	counts       bool // the value belongs to the turn
	confirmation bool
	family       wire.Family // of a confirmation
	tail         []byte      // the last bytes of a confirmation

	counted int64 // replies to that member that have ended and are not reported yet
	said    []wire.Confirmation
	pipes   bool // values are no longer counted; Conn.pipe is set when all before is passed on
	listens bool // there are subscriptions
}

// feed delivers p, the next bytes from the server. They are the caller's again when it returns. After
// an error nothing more may be fed.
func (c *Conn) feed(p []byte) (err error) {
	if len(c.kept) > 0 {
		p, c.kept = append(c.kept, p...), nil
	}
	from, at := 0, 0 // p[from:at] is for one destination, and not passed on yet
	for at < len(p) {
		if !c.inside {
			to, as, enough := c.begin(p[at:])
			if !enough {
				c.kept = bytes.Clone(p[at:])
				break
			}
			if to != c.to || as != c.as {
				c.pass(p[from:at], false)
				from, c.to, c.as = at, to, as
			}
			if to == nil && c.counts {
				err = errUnasked
				break
			}
			c.inside, c.partly = true, false
		}
		n, done, wrong := c.scanner.Scan(p[at:])
		if err = wrong; err != nil {
			break
		}
		if c.confirmation {
			c.keepTail(p[at : at+n])
		}
		if at += n; done {
			c.inside = false
			if !c.counts || c.turn.Kind != Reply {
				c.end()
			} else if c.counted++; c.turn.Count > 1 { // most values
				c.turn.Count--
			} else {
				c.turn = turn{}
			}
		}
	}
	rest := p[from:at]
	if err != nil && c.inside && !c.partly && c.as == ToClient {
		// The client has no part of the reply yet, so an error can replace it.
		c.inside = false
		rest = append(slices.Clip(rest), wire.ErrUpstreamReply...)
	}
	c.partly = c.inside
	c.pass(rest, c.inside)
	return err
}

// begin gets the first bytes of a value and finds who gets it. If enough is false, it needs more bytes.
// That happens only near the beginning of an unfinished value. A value that nobody asked for counts and
// has no member.
//
// These are all the rules. One top-level value answers each command, or one confirmation for each name.
// A push (>) answers nothing, unless it is such a confirmation. In RESP2 the same holds for an array
// that is a message, if there are subscriptions. Pushes and confirmations go to the client that has the
// connection for itself, and to nobody otherwise. In a pipe, no values are counted.
func (c *Conn) begin(p []byte) (to *Member, as Destination, enough bool) {
	if c.turn.of == nil {
		c.mu.Lock()
		c.turn = c.queue.take()
		c.mu.Unlock()
	}
	first, isPush := &c.turn, p[0] == '>'
	c.counts, c.confirmation = false, false
	c.pipes = c.pipes || c.pipe.Load() || first.Kind == Stream && first.Count == 0
	// Without PushCounts EXEC's reply might never end in a pipe.
	if c.scanner.PushCounts = c.pipes; c.pipes {
		return c.only, ToClient, true
	}
	expectsName := first.Kind == Confirmations
	if (expectsName || c.listens) && (isPush || p[0] == '*' && c.version == wire.RESP2) {
		name, known := wire.FirstElement(p)
		if !known || wire.IsMessage(name) {
			return c.only, ToClient, known
		}
		if family, adds, confirms := wire.ConfirmationOf(name); confirms {
			c.counts = expectsName && first.Family == family && first.Adds == adds
			c.confirmation, c.family, c.tail = true, family, c.tail[:0]
			return c.only, ToClient, true
		}
	}
	if isPush {
		return c.only, ToClient, true
	}
	if c.only == nil && bytes.HasPrefix(p, readOnly) && first.of != nil && !c.stale.Load() {
		c.pool.leave(c.server)
	}
	c.counts = true
	return first.of, first.To, true
}

// end is called when a value has ended that is no ordinary reply. It still has to be passed on.
func (c *Conn) end() {
	t := &c.turn
	switch {
	case c.confirmation:
		c.confirmed()
	case c.counts && t.Kind == Confirmations: // an error for all names
		c.said = append(c.said, wire.Confirmation{Family: t.Family, Adds: t.Adds, Refused: true, Names: t.Names})
		t.Count = 1
	}
	if !c.counts {
		return
	}
	if t.Count--; t.Count > 0 {
		return
	}
	switch {
	case c.scanner.Kind() == '-':
	case t.Kind == Stream:
		c.pipes = true
	case t.Kind == Switch:
		c.mu.Lock()
		c.version = t.Version
		c.mu.Unlock()
	}
	c.counted++
	c.turn = turn{}
}

// confirmed takes the number of subscriptions from a confirmation, and notes what it says if it was expected.
func (c *Conn) confirmed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.turn
	if c.counts {
		if t.Count == 0 {
			t.Count = max(1, c.subscribed[c.family])
		}
		c.said = append(c.said, t.confirmation())
	}
	c.subscribed.confirm(c.family, c.tail)
	c.listens = c.subscribed.any()
}

// pass gives bytes to the member of the current value, and reports the replies that have ended. inside
// tells whether the last value goes on. The owner is told in the same step what the bytes say. A client that
// takes no more gets nothing more: its session learns that from its socket.
func (c *Conn) pass(p []byte, inside bool) {
	m := c.to
	if m == nil {
		return
	}
	switch toClient := c.as == ToClient && len(p) > 0; {
	case (toClient || len(c.said) > 0) && !m.gone.Load():
		m.client.Lock()
		defer m.client.Unlock()
		if toClient && m.client.pass(p, inside) != nil { // else the client does not want to see a refusal
			m.gone.Store(true)
		}
		for _, said := range c.said {
			m.Owner.Confirmed(said)
		}
		if m.client.to.Waiting() > mostUnread {
			c.stopFor(m)
		}
	case c.as == ToOwner && len(p) > 0: // else the task may have what was captured before
		m.capture(p)
	}
	c.said = c.said[:0]
	if c.pipes && !c.pipe.Load() { // the client has the reply with which the pipe begins
		c.pipe.Store(true)
		m.task.Unpark()
	}
	if c.counted > 0 && m.pending.Add(-c.counted) == 0 && m.waits.Load() {
		m.task.Unpark()
	}
	c.counted = 0
}

func (c *Conn) keepTail(p []byte) {
	if len(p) >= tailSize {
		c.tail = append(c.tail[:0], p[len(p)-tailSize:]...)
		return
	}
	if over := len(c.tail) + len(p) - tailSize; over > 0 {
		c.tail = c.tail[:copy(c.tail, c.tail[over:])]
	}
	c.tail = append(c.tail, p...)
}
