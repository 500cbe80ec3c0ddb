package upstream

import (
	"bytes"
	"errors"
	"slices"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

const (
	// tailSize is enough for the integer that ends a confirmation.
	tailSize = 24
	// beginning is how many of a value's first bytes always show what it is.
	beginning = 64
)

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

	turn    turn // its values come now
	inside  bool // a value has begun and not ended
	value   value
	to      *Member     // gets the value
	as      Destination // of the value
	partly  bool        // its client has a part of the value
	counted int64       // replies to that member that have ended and are not reported yet
	tail    []byte      // the value's last bytes, if it is a confirmation
	said    []wire.Confirmation
	pipes   bool // Conn.pipe is to be set when all before it is passed on
}

// A value is what is known of the current one.
type value struct {
	counts       bool // it belongs to the turn
	confirmation bool
	family       wire.Family
}

// feed delivers p, the next bytes from the server. They are the caller's again when it returns. After
// an error nothing more may be fed.
func (c *Conn) feed(p []byte) error {
	for len(c.kept) > 0 && len(p) > 0 {
		n := min(len(p), beginning)
		c.kept = append(c.kept, p[:n]...)
		p = p[n:]
		used, err := c.deliver(c.kept)
		if err != nil {
			return err
		}
		c.kept = c.kept[:copy(c.kept, c.kept[used:])]
	}
	if len(p) == 0 {
		return nil
	}
	used, err := c.deliver(p)
	if err == nil {
		c.kept = append(c.kept, p[used:]...)
	}
	return err
}

// deliver is feed. It leaves bytes at the end of p that are too few to tell what value they begin. used
// is the number of those before.
func (c *Conn) deliver(p []byte) (used int, err error) {
	from, at := 0, 0 // p[from:at] is for one destination, and not passed on yet
	for at < len(p) {
		if !c.inside {
			to, as, enough := c.begin(p[at:])
			if !enough {
				break
			}
			if to != c.to || as != c.as {
				c.pass(p[from:at], false)
				from, c.to, c.as = at, to, as
			}
			if to == nil && c.value.counts {
				err = errUnasked
				break
			}
			// Without PushCounts EXEC's reply might never end in a pipe.
			c.inside, c.partly, c.scanner.PushCounts = true, false, c.inPipe()
		}
		n, done, wrong := c.scanner.Scan(p[at:])
		if err = wrong; err != nil {
			break
		}
		if c.value.confirmation {
			c.keepTail(p[at : at+n])
		}
		if at += n; done {
			c.inside = false
			c.end()
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
	return at, err
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
	if first.Kind == Reply && !isPush && first.of != nil && !c.subscribed.any() { // most values
		c.value = value{counts: true}
		if c.only == nil && bytes.HasPrefix(p, readOnly) && !c.stale.Load() {
			c.pool.leave(c.server)
		}
		return first.of, first.To, true
	}
	c.value = value{}
	if first.of != nil && first.isPipe() {
		c.pipes = true
	}
	if c.inPipe() {
		return c.only, ToClient, true
	}
	expectsName := first.of != nil && first.Kind == Confirmations
	if (expectsName || c.subscribed.any()) && (isPush || p[0] == '*' && c.version == wire.RESP2) {
		name, known := wire.FirstElement(p)
		if !known || wire.IsMessage(name) {
			return c.only, ToClient, known
		}
		if family, adds, confirms := wire.ConfirmationOf(name); confirms {
			counts := expectsName && first.Family == family && first.Adds == adds
			c.value = value{counts: counts, confirmation: true, family: family}
			c.tail = c.tail[:0]
			return c.only, ToClient, true
		}
	}
	if isPush {
		return c.only, ToClient, true
	}
	c.value.counts = true
	return first.of, first.To, true
}

// end is called when a value has ended. It still has to be passed on.
func (c *Conn) end() {
	if !c.value.counts && !c.value.confirmation {
		return
	}
	if c.turn.Kind == Reply && !c.value.confirmation { // most values
		c.counted++
		if c.turn.Count--; c.turn.Count == 0 {
			c.turn = turn{}
		}
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.turn
	if c.value.confirmation {
		if c.value.counts && t.Count == 0 {
			t.Count = max(1, c.subscribed[c.value.family])
		}
		c.subscribed.confirm(c.value.family, c.tail)
	}
	if !c.value.counts {
		return
	}
	refused := false
	if t.Kind == Confirmations {
		refused = !c.value.confirmation
		c.said = append(c.said, t.confirmation(refused))
	}
	if t.Count--; t.Count > 0 && !refused {
		return
	}
	switch {
	case c.scanner.Kind() == '-':
	case t.Kind == Stream:
		c.pipes = true
	case t.Kind == Switch:
		c.version = t.Version
	}
	c.counted++
	c.turn = turn{}
}

// inPipe tells the loop whether values are no longer counted.
func (c *Conn) inPipe() bool { return c.pipes || c.pipe.Load() }

// pass gives bytes to the member of the current value, and reports the replies that have ended. inside
// tells whether the last value goes on.
func (c *Conn) pass(p []byte, inside bool) {
	m := c.to
	if m == nil {
		return
	}
	if len(c.said) > 0 || c.as == ToClient && len(p) > 0 {
		c.passToClient(m, p, inside)
	} else if c.as == ToOwner && len(p) > 0 { // else the task may have what was captured before
		m.capture(p)
	}
	if c.pipes && !c.pipe.Load() { // the client has the reply with which the pipe begins
		c.pipe.Store(true)
		m.task.Unpark()
	}
	m.answered(c.counted)
	c.counted = 0
}

func (c *Conn) passToClient(m *Member, p []byte, inside bool) {
	if m.gone.Load() {
		c.said = c.said[:0]
		return
	}
	if c.as != ToClient { // a refusal that the client does not want to see
		p, inside = nil, false
	}
	if !c.write(m, p, inside) {
		m.clientLeft()
		c.stopped = c.stopped || c.only != nil
		return
	}
	if m.client.IsFull() {
		c.stopFor(m)
	}
}

// write writes to the client, and tells the owner in the same step what the bytes say. It returns false
// if the client takes no more.
func (c *Conn) write(m *Member, p []byte, inside bool) bool {
	m.client.Lock()
	defer m.client.Unlock()
	err := m.client.Pass(p, inside)
	for _, said := range c.said {
		m.Owner.Confirmed(said)
	}
	c.said = c.said[:0]
	return err == nil
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
