package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// A Conn is a logged-in connection to the ordinary Redis. Its members write to it. The loop gives
// each reply to the member whose command it answers (feed.go). Any goroutine may call the exported
// methods.
type Conn struct {
	pool       *Pool
	sock       *loop.Socket
	only       *Member // has the connection for itself; nil: it is one of the pool's
	server     Server
	mostUnsent int         // bytes that may wait to be sent before members wait
	stale      atomic.Bool // no member begins to use it any more
	over       atomic.Bool // nothing can be written; changed under mu
	ended      atomic.Bool // its members know
	pipe       atomic.Bool // values are no longer counted
	id         atomic.Int64
	release    func() // is called when the loop has let go of it; may be nil

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
func (c *Conn) attach(dialled net.Conn) *Failure {
	sock, err := c.pool.loop.Adopt(dialled, receiver{c})
	if err != nil {
		_ = dialled.Close()
		return &Failure{Reply: wire.ErrUpstreamDown, Err: err}
	}
	c.sock = sock
	return nil
}

// receiver is a connection as its loop sees it. Nothing here waits.
type receiver struct{ *Conn }

// Received gives p to the members. If something is wrong, it tells the pool, and ends the connection.
func (r receiver) Received(p []byte) {
	if r.stopped {
		return
	}
	if wrong := r.feed(p); wrong != nil {
		r.stopped = true
		r.pool.wrong(wrong)
	} else if len(r.full) > 0 {
		r.endSlow()
	}
	if r.stopped {
		r.finish()
	}
}

// Ended is called with io.EOF, and again when the loop has let go of the connection, also after a panic here.
func (r receiver) Ended(err error) {
	if errors.Is(err, loop.ErrPanicked) {
		r.stopped = true
		r.pool.wrong(err)
	}
	r.finish()
	if !errors.Is(err, io.EOF) && r.release != nil {
		r.release()
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
	} else if c.inside && c.to != nil && c.as == ToClient && !c.to.gone.Load() {
		c.to.client.Lock() // others may write to the client
		_ = c.to.client.pass(nil, false)
		c.to.client.Unlock()
	}
	c.stopped = true
	c.sock.Close()
	for _, m := range c.unanswered() {
		m.fail()
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
		if m != nil && (m == c.only || !m.Drained() && m.conn.Load() == c) {
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
