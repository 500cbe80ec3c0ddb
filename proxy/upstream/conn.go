package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

const (
	// drainSilence bounds the silence of a server to which no more commands will go.
	// After it, the connection is closed.
	drainSilence = 10 * time.Second
	// mostUnsent bounds the bytes that wait to be sent on a shared connection, and ownUnsent those on a
	// member's own. While there are more, Write waits.
	mostUnsent = 1 << 20
	ownUnsent  = 64 << 10
)

// A Conn is a logged-in connection to the ordinary Redis. Its members write to it. The loop gives
// each reply to the member whose command it answers (feed.go). Any goroutine may call the exported
// methods.
type Conn struct {
	sock    *conn.Socket
	only    *Member // has the connection for itself; nil: it is one of the pool's
	pool    *Pool   // nil for a member's own
	server  Server
	stale   atomic.Bool // no member begins to use it any more
	over    atomic.Bool // nothing can be written; changed under mu
	ended   atomic.Bool // its members know
	pipe    atomic.Bool // values are no longer counted
	drains  atomic.Bool // no more commands will come
	id      atomic.Int64
	release func() // is called when the loop has let go of it; may be nil

	mu         sync.Mutex
	queue      queue
	version    wire.Version  // only the loop changes it
	subscribed subscriptions // only the loop changes it

	// Only the loop uses these.
	feeder
	congestion
	stopped bool // nothing more may be fed
	retired int  // how often the watch found it stale
}

// dialPatience bounds the time for dial and login together. A command waits for them,
// so it is shorter than the usual timeouts of clients.
const dialPatience = 3 * time.Second

// A Dial opens a connection to the ordinary Redis.
type Dial = func(context.Context) (net.Conn, error)

// dialAndLogIn returns a connection that has logged in, and whether the server has identified the
// client.
func dialAndLogIn(ctx context.Context, dial Dial, login *Login) (dialled net.Conn, known bool, failure *Failure) {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	dialled, err := dial(ctx)
	if err != nil {
		return nil, false, &Failure{Reply: wire.ErrUpstreamDown, Err: err}
	}
	deadline, _ := ctx.Deadline()
	if known, failure = login.do(dialled, deadline); failure != nil {
		_ = dialled.Close()
		return nil, false, failure
	}
	return dialled, known, nil
}

// attach has the loop read and write the connection from now on.
func (c *Conn) attach(dialled net.Conn, l *loop.Loop, clock *conn.Clock, task *loop.Task) *Failure {
	sock, err := conn.Adopt(dialled, l, task, clock, receiver{c})
	if err != nil {
		_ = dialled.Close()
		return &Failure{Reply: wire.ErrUpstreamDown, Err: err}
	}
	c.sock = sock
	return nil
}

// enter adds a member's commands, and what it expects, at the end of the connection. It returns false
// if the connection has ended.
func (c *Conn) enter(m *Member, commands []byte, expected []Expectation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range expected {
		t := turn{of: m, Expectation: expected[i]}
		m.pending.Add(t.replies())
		if !c.over.Load() && (t.Count > 0 || t.Kind != Reply) {
			c.queue.add(t)
		}
	}
	if c.over.Load() {
		return false
	}
	_ = c.sock.Append(commands)
	return true
}

// isFull tells whether much waits to be sent.
func (c *Conn) isFull() bool {
	if c.only != nil {
		return c.sock.Waiting() > ownUnsent
	}
	return c.sock.Waiting() > mostUnsent
}

// awaitRoom returns when little waits to be sent, or the connection or the member has ended.
func (c *Conn) awaitRoom(m *Member) {
	for c.isFull() && !c.over.Load() && !m.gone.Load() && c.sock.WhenRoom(m.unpark) {
		m.task.Park()
	}
}

// receiver is a connection as its loop sees it. Nothing here waits.
type receiver struct{ *Conn }

func (r receiver) Received(p []byte) {
	switch {
	case r.stopped:
	case !r.take(p):
		r.finish()
	case r.drains.Load():
		r.sock.ReadUntil(time.Now().Add(drainSilence))
	}
}

// Ended is called with io.EOF, and again when the loop has let go of the connection.
func (r receiver) Ended(err error) {
	r.finish()
	if !errors.Is(err, io.EOF) && r.release != nil {
		r.release()
	}
}

// take is feed, and tells the owners if something is wrong. It returns false if the connection must
// end.
func (c *Conn) take(p []byte) (more bool) {
	defer c.catch()
	if wrong := c.feed(p); wrong != nil {
		c.stopped = true
		if c.only != nil {
			c.only.Owner.OutOfSync(wrong)
		} else {
			c.pool.outOfSync(wrong)
		}
		return false
	}
	c.endSlow()
	return !c.stopped
}

// catch is deferred. It ends a connection in which there was a panic. Other clients hold locks through
// this process.
func (c *Conn) catch() {
	if reason := recover(); reason != nil {
		c.stopped = true
		if c.only != nil {
			c.only.Owner.Panicked(reason)
		} else {
			c.pool.outOfSync(fmt.Errorf("panic: %v", reason))
		}
		c.sock.Abandon()
	}
}

// finish fails every member with replies missing, and the one that has the connection for itself. It
// may be called again.
func (c *Conn) finish() {
	if c.over.Load() {
		return
	}
	if len(c.kept) > 0 && !c.stopped {
		c.to, c.as = c.only, ToClient
		c.pass(c.kept, false)
	} else if c.inside && c.to != nil && c.as == ToClient {
		c.write(c.to, nil, false) // others may write to the client
	}
	c.stopped = true
	c.sock.Close()
	for _, m := range c.unanswered() {
		m.breaks()
	}
	c.ended.Store(true)
	if c.only != nil {
		c.only.task.Unpark()
	}
}

// unanswered ends the connection. It returns the members that fail now.
func (c *Conn) unanswered() (members []*Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over.Store(true)
	add := func(m *Member) {
		if m != nil && !m.broken && (m == c.only || !m.Drained() && m.conn.Load() == c) {
			m.broken = true
			members = append(members, m)
		}
	}
	add(c.only)
	add(c.to) // after a panic its last reply may be counted and not given
	add(c.turn.of)
	for _, t := range c.queue.waiting() {
		add(t.of)
	}
	c.queue = queue{}
	return members
}

// isPast tells whether a member needs another connection.
func (c *Conn) isPast() bool { return c.over.Load() || c.stale.Load() }

// isIdle tells whether no reply is missing. The loop calls it.
func (c *Conn) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.inside && c.turn.of == nil && len(c.queue.waiting()) == 0
}

// Drained tells whether nothing is pending on a member's own connection.
func (c *Conn) Drained() bool { return c.only.Drained() }

// Pipe tells whether replies are no longer counted. Then everything that comes goes to
// the client, and nothing is pending.
func (c *Conn) Pipe() bool { return c.pipe.Load() }

// Listens tells whether values may come that answer no command.
func (c *Conn) Listens() bool { return c.Pipe() || c.Subscriptions() != [3]int{} }

// Restricted tells whether the upstream is in RESP2's subscribe mode, according to its
// replies so far.
func (c *Conn) Restricted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version == wire.RESP2 && !c.pipe.Load() && c.subscribed.any()
}

// Subscriptions are the numbers of subscriptions by wire.Family.
func (c *Conn) Subscriptions() [3]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subscribed
}

// ID is the upstream's id of this connection, or 0 if it is unknown.
func (c *Conn) ID() int64 { return c.id.Load() }

// SetID takes the id from the upstream's reply to CLIENT ID, if it is one.
func (c *Conn) SetID(reply []byte) {
	if id, ok := wire.LastInteger(reply); ok && reply[0] == ':' {
		c.id.Store(int64(id))
	}
}

// startDrain closes the connection once the upstream has been silent for drainSilence, because no more
// commands will be sent.
func (c *Conn) startDrain() {
	c.drains.Store(true)
	c.sock.ReadUntil(time.Now().Add(drainSilence))
}

// closeWrite tells the upstream that no more commands will come, as the end of a client's own
// connection would. The remaining replies are still delivered.
func (c *Conn) closeWrite() {
	c.startDrain()
	c.sock.CloseWrite()
}
