package upstream

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
)

// drainSilence bounds the silence of an upstream to which no more commands will go.
// After it, the connection is closed.
const drainSilence = 10 * time.Second

// A Conn is one client's logged-in connection to the ordinary Redis. Its owner calls
// Expect, to say how commands will be answered, and then writes them. Any goroutine may
// call the methods that say so. Only the owner's task may call the others. The
// owner ends a Conn with Close.
type Conn struct {
	conn    *conn.Socket
	pending *pending
	options Options
	client  client // options.Client

	// Only the loop uses these.
	scanner   resp.Scanner
	kept      []byte // too few to tell what value they begin
	stopped   bool   // nothing more may be fed
	broken    error  // why nothing more may be delivered
	plain     int    // the number of next values that pending has called plain
	answered  int    // plain values that ended and are not reported yet
	counted   bool   // the current value is a plain one
	inside    bool   // a value has begun and not ended
	partly    bool   // the client has a part of that value
	to        Destination
	locked    bool // this connection has locked the client's writing side
	awaits    bool // a goroutine waits for the client's writing side
	over      bool // the connection has ended, and backlog may be left
	finished  bool
	backlog   []byte // came while others wrote to the client
	tail      []byte
	captured  []byte
	charged   int                 // bytes of Options.Memory that captured takes
	overflow  bool                // captured is incomplete
	confirmed []wire.Confirmation // their values have ended and are not written yet

	id       atomic.Int64
	draining atomic.Bool
	ended    atomic.Bool
}

// A client is the writing side of the owner's client (conn.Writer).
type client interface {
	TryLock() bool
	Lock()
	Unlock()
	Append(p []byte) error
}

// Events receives what happens on a connection. The loop calls it. No method may wait or write
// to the client.
type Events interface {
	// Confirmed is called after a confirmation was written to the client. The client's
	// writing side is locked.
	Confirmed(wire.Confirmation)
	// ClientLeft is called when a write to the client fails.
	ClientLeft()
	// OutOfSync is called when the upstream sent bytes that cannot be a reply to the commands.
	// The connection ends.
	OutOfSync(error)
	// Panicked is called with the value that recover returned. The connection ends.
	Panicked(reason any)
	// Ended is the last call, and comes once, when everything that came is delivered.
	Ended()
}

// Options are the things that a connection needs from its owner.
type Options struct {
	Client   *conn.Writer // gets the replies; a loop writes to it
	Events   Events
	Captures int64 // the most bytes of replies that Wait returns
	Clock    *conn.Clock
	Memory   *conn.Budget // is charged for long replies that Wait returns
	Task     *loop.Task   // the owner's, which calls Write and Wait
}

// dialPatience bounds the time for dial and login together. A command waits for them,
// so it is shorter than the usual timeouts of clients.
const dialPatience = 3 * time.Second

// Dial dials and logs in, as Open does. The connection is the caller's.
func Dial(ctx context.Context, dial func(context.Context) (net.Conn, error), login *Login) (dialled net.Conn, known bool, failure *Failure) {
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

// Open dials, logs in and has the client's loop pass replies on. known tells whether the upstream has
// identified the client. If not, it waits for the client's own login. If Open fails,
// the Conn is nil and failure is not.
func Open(ctx context.Context, dial func(context.Context) (net.Conn, error), login *Login, o Options) (c *Conn, known bool, failure *Failure) {
	dialled, known, failure := Dial(ctx, dial, login)
	if failure != nil {
		return nil, false, failure
	}
	c = &Conn{conn: conn.NewSocket(dialled, o.Clock), pending: newPending(login.Version, o.Task), options: o, client: o.Client}
	c.SetID(login.id)
	if !c.attach() {
		_ = dialled.Close()
		return nil, false, &Failure{Reply: wire.ErrUpstreamDown, Err: net.ErrClosed}
	}
	return c, known, nil
}

// Expect says how the next commands will be answered. The owner calls it before Write.
func (c *Conn) Expect(e Expectation) { c.pending.expect(e) }

// Write sends commands to the upstream. It returns no error: after a failed write the loop
// delivers what the upstream still sent, and then meets the connection's end.
func (c *Conn) Write(p []byte) {
	_ = c.conn.Send(c.options.Task, p)
}

// Wait returns when no replies are pending and the client has everything that came. It
// returns false if the connection ends before that. replies are those for the owner,
// valid until the next Expect. They are nil if there were none, or if they were too
// long to keep.
func (c *Conn) Wait() (replies []byte, ok bool) {
	for !c.pending.drained(true) {
		if c.Ended() && !c.pending.drained(false) {
			return nil, false
		}
		c.options.Task.Park()
	}
	if len(c.captured) > 0 && !c.overflow {
		replies = c.captured
	}
	c.captured, c.overflow = c.captured[:0], false
	if cap(c.captured) > conn.LargeBuffer {
		c.captured = nil
	}
	c.release()
	return replies, true
}

// Drained tells whether Wait would return at once. Any goroutine may ask.
func (c *Conn) Drained() bool { return c.pending.drained(false) }

// Pipe tells whether replies are no longer counted. Then everything that comes goes to
// the client, and nothing is pending. Any goroutine may ask.
func (c *Conn) Pipe() bool { return c.pending.pipe.Load() }

// Listens tells whether values may come that answer no command. Any goroutine may ask.
func (c *Conn) Listens() bool { return c.pending.listens() }

// Restricted tells whether the upstream is in RESP2's subscribe mode, according to its
// replies so far. Any goroutine may ask.
func (c *Conn) Restricted() bool { return c.pending.restricted() }

// Ended tells whether the connection has ended. Any goroutine may ask.
func (c *Conn) Ended() bool { return c.ended.Load() }

// awaitEnd returns when the connection has ended.
func (c *Conn) awaitEnd() {
	for !c.Ended() {
		c.options.Task.Park()
	}
}

// ID is the upstream's id of this connection, or 0 if it is unknown. Any goroutine may ask.
func (c *Conn) ID() int64 { return c.id.Load() }

// SetID takes the id from the upstream's reply to CLIENT ID, if it is one.
func (c *Conn) SetID(reply []byte) {
	if id, ok := wire.LastInteger(reply); ok && reply[0] == ':' {
		c.id.Store(int64(id))
	}
}

// Subscriptions are the numbers of subscriptions by wire.Family. Any goroutine may ask.
func (c *Conn) Subscriptions() [3]int { return c.pending.subscriptions() }

// StartDrain closes the connection once the upstream has been silent for drainSilence.
// Call it when no more commands will be sent. Any goroutine may call it.
func (c *Conn) StartDrain() {
	c.draining.Store(true)
	c.conn.ReadUntil(time.Now().Add(drainSilence))
}

// CloseWrite tells the upstream that no more commands will come, as the end of a
// client's own connection would. The remaining replies are still delivered. Any
// goroutine may call it.
func (c *Conn) CloseWrite() {
	c.StartDrain()
	c.conn.CloseWrite()
}

// Finish calls CloseWrite and waits for the connection's end. Otherwise a command that still
// blocks at the upstream could swallow an element. whole is false if the last value was
// cut off.
func (c *Conn) Finish() (whole bool) {
	c.CloseWrite()
	c.awaitEnd()
	return !c.inside
}

// ClosesAtOnce tells whether Close cuts off nothing and waits for nobody but the loop.
func (c *Conn) ClosesAtOnce() bool { return c.Drained() && !c.Pipe() }

// Close ends the connection. After it has returned, nothing more is written to the client, and no
// event comes but Ended.
func (c *Conn) Close() {
	_ = c.conn.Close()
	c.awaitEnd()
	c.release()
}

func (c *Conn) release() {
	c.options.Memory.Release(c.charged)
	c.charged = 0
}

// Abandon closes the connection without TLS's closing message and does not wait. Any
// goroutine may call it.
func (c *Conn) Abandon() { c.conn.Abandon() }

// Stalled is the time that the current write has been under way, or 0. Any goroutine
// may ask.
func (c *Conn) Stalled() time.Duration { return c.conn.Stalled() }
