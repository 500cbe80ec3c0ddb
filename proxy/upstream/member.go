package upstream

import (
	"context"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// A client is the writing side of a member's client (conn.Writer).
type client interface {
	Lock()
	Unlock()
	Pass(p []byte, inside bool) error
	IsFull() bool
	Waiting() int
	WhenTaken(then func()) bool
}

// An Owner is the session of a member. The loop calls it. No method may wait, or write to the client.
type Owner interface {
	// Confirmed is called with each confirmation, in one step with the bytes that say so to the client:
	// the client's writing side is locked.
	Confirmed(wire.Confirmation)
	// Broken is called when replies will never come, or the member's own connection has ended.
	Broken()
	// ClientLeft is called when a write to the client fails.
	ClientLeft()
	// Unread is called if others wait because the client does not read. The owner ends it.
	Unread()
	// OutOfSync is called when the server sent bytes on the member's own connection that cannot be a
	// reply to the commands. The connection ends.
	OutOfSync(error)
	// Panicked is called with the value that recover returned. The member's own connection ends.
	Panicked(reason any)
}

// Options are the things that a member needs from its owner.
type Options struct {
	Owner    Owner
	Pool     *Pool
	Captures func() int64 // the most bytes of replies that Wait returns
	Waiting  func(func()) // calls a function that waits until the server takes more
}

// A Member is one session's part in the connections to the ordinary Redis. At any time it has none, one
// for itself, or uses one of the pool's. Its task calls the methods, unless they say otherwise. The
// owner calls Close.
type Member struct {
	Options
	writer *conn.Writer // of the owner's client
	client client       // the same
	task   *loop.Task   // the owner's
	unpark func()       // task.Unpark, as one value
	index  int          // of the connections to one server

	conn     atomic.Pointer[Conn] // the last one that was used; nil: none, or its own was closed
	expected []Expectation        // for the next Write
	failed   atomic.Bool          // replies will never come, or will not reach the client
	gone     atomic.Bool          // nothing more may be written to the client
	slow     atomic.Bool          // others may have waited for it
	pending  atomic.Int64         // replies that are not at their destinations yet
	waits    atomic.Bool          // the task waits for that
	drains   atomic.Bool          // the client sends no more
	leaving  atomic.Pointer[time.Timer]

	// The loop uses these while replies are pending, and the task when none is.
	captured []byte
	charged  int  // bytes of memory that captured takes
	overflow bool // captured is incomplete

	// Only the loop uses these.
	broken bool // the owner knows that replies will never come
	waited int  // the bytes that waited for the client when reading stopped for it
}

// NewMember makes a member that has no connection.
func NewMember(o Options) *Member {
	return &Member{Options: o, index: o.Pool.nextIndex()}
}

// Begin says which task runs the owner, and who gets the replies. It comes before all methods but those
// that any goroutine may call.
func (m *Member) Begin(task *loop.Task, client *conn.Writer) {
	m.task, m.unpark, m.writer, m.client = task, task.Unpark, client, client
}

// Own is the connection that the member has for itself, or nil. Any goroutine may ask.
func (m *Member) Own() *Conn {
	if c := m.conn.Load(); c != nil && c.only != nil {
		return c
	}
	return nil
}

// Open dials and logs in a connection that the member has for itself. known tells whether the upstream
// has identified the client. If not, it waits for the client's own login. No reply may be pending.
func (m *Member) Open(ctx context.Context, dial Dial, login *Login) (known bool, failure *Failure) {
	dialled, known, failure := dialAndLogIn(ctx, dial, login)
	if failure != nil {
		return false, failure
	}
	c := &Conn{only: m, version: login.Version}
	c.SetID(login.id)
	if failure := c.attach(dialled, m.Pool.loop, m.Pool.clock, m.task); failure != nil {
		return false, failure
	}
	m.leaveShared()
	m.conn.Store(c)
	c.sock.ReadLike(m.writer)
	if m.drains.Load() {
		c.startDrain()
	}
	c.sock.Resume()
	return known, nil
}

// On tells whether Write would send to that server now, over a shared connection.
func (m *Member) On(server Server, version wire.Version) bool {
	c := m.conn.Load()
	return c != nil && c.only == nil && c.version == version && c.server == server && !c.isPast()
}

// TryJoin is Join if a connection is there already and Join would not wait. It returns false
// otherwise.
func (m *Member) TryJoin(server Server, version wire.Version) bool {
	c := m.Pool.open(laneKey{server, version, m.index})
	if c != nil {
		m.join(c)
	}
	return c != nil
}

// Join has Write send to this server from now on, over a connection that others use, too. It may dial.
// No reply may be pending, and the member has no connection for itself.
func (m *Member) Join(server Server, version wire.Version, dial Dial) *Failure {
	c, failure := m.Pool.get(laneKey{server, version, m.index}, dial)
	if failure == nil {
		m.join(c)
	}
	return failure
}

func (m *Member) join(c *Conn) {
	if m.conn.Swap(c) == nil {
		m.Pool.members.Add(1)
		if m.drains.Load() {
			m.abandonAfter(drainSilence)
		}
	}
}

// leaveShared is called when the member uses shared connections no more.
func (m *Member) leaveShared() {
	if c := m.conn.Load(); c != nil && c.only == nil {
		m.Pool.members.Add(-1)
		m.stopLeaving()
	}
}

// Expect says how the commands of the next Write will be answered.
func (m *Member) Expect(e Expectation) {
	c := m.conn.Load()
	switch {
	case c.pipe.Load():
		return
	case c.only == nil && (e.Kind != Reply || e.To == ToOwner):
		panic("only ordinary replies can be shared")
	case e.Kind == Stream && e.Count == 0 && m.Drained() && len(m.expected) == 0:
		c.pipe.Store(true)
		return
	}
	m.expected = append(m.expected, e)
}

// Write sends the commands that Expect has announced. It waits while the server takes no more. If the
// connection has ended, the member fails.
func (m *Member) Write(p []byte) {
	c := m.conn.Load()
	if c.isFull() {
		m.Waiting(func() { c.awaitRoom(m) })
	}
	var long []byte // is sent without a copy
	if c.only != nil && len(p) > ownUnsent {
		p, long = nil, p
	}
	entered := c.enter(m, p, m.expected)
	m.expected = m.expected[:0]
	switch {
	case !entered:
		m.fail()
	case long != nil:
		m.Waiting(func() { c.sock.Send(long) })
	}
}

// answered is called on the loop when n more replies are at their destinations.
func (m *Member) answered(n int64) {
	if n > 0 && m.pending.Add(-n) == 0 && m.waits.Load() {
		m.task.Unpark()
	}
}

func (m *Member) fail() {
	m.failed.Store(true)
	if m.conn.Load() != nil { // Begin was called before
		m.task.Unpark()
	}
}

// breaks is called on the loop when the connection has ended, and the client has all that came.
func (m *Member) breaks() {
	m.fail()
	m.Owner.Broken()
}

// clientLeft is called when a write to the client has failed.
func (m *Member) clientLeft() {
	if !m.gone.Swap(true) {
		m.fail()
		m.Owner.ClientLeft()
	}
}

// isUnread is called when others wait because the client does not read.
func (m *Member) isUnread() {
	if !m.gone.Swap(true) {
		m.Owner.Unread()
		m.fail()
	}
}

// Drained tells whether nothing is pending. Any goroutine may ask.
func (m *Member) Drained() bool {
	if m.pending.Load() == 0 {
		return true
	}
	c := m.conn.Load()
	return c != nil && c.Pipe()
}

// Failed tells whether the session must end. Any goroutine may ask.
func (m *Member) Failed() bool { return m.failed.Load() }

// IsSlow tells whether others may have waited for the client. It should get a connection of its
// own.
func (m *Member) IsSlow() bool { return m.slow.Load() }

// ClosesAtOnce tells whether Close cuts off nothing.
func (m *Member) ClosesAtOnce() bool {
	own := m.Own()
	return m.Drained() && (own == nil || !own.Pipe())
}

// Wait returns when no reply is pending and the client has everything that came. It returns false if
// replies will never come. replies are those for the owner, valid until the next Expect. They are nil if
// there were none, or if they were too long to keep.
func (m *Member) Wait() (replies []byte, ok bool) {
	m.waits.Store(true)
	for !m.Drained() && !m.Failed() {
		m.task.Park()
	}
	m.waits.Store(false)
	if !m.Drained() {
		return nil, false
	}
	if len(m.captured) > 0 && !m.overflow {
		replies = m.captured
	}
	m.captured, m.overflow = m.captured[:0], false
	if cap(m.captured) > conn.LargeBuffer {
		m.captured = nil
	}
	m.release()
	return replies, true
}

// capture keeps bytes of replies for the owner.
func (m *Member) capture(p []byte) {
	length := len(m.captured) + len(p)
	if m.overflow || int64(length) > m.Captures() {
		m.overflow = true
		return
	}
	if length > conn.LargeBuffer {
		if !m.Pool.memory.Reserve(len(p)) {
			m.overflow = true
			return
		}
		m.charged += len(p)
	}
	m.captured = append(m.captured, p...)
}

func (m *Member) release() {
	m.Pool.memory.Release(m.charged)
	m.charged = 0
}
