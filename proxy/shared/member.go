package shared

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// An Owner is the session of a member. Any goroutine may call it. No method may wait for the
// connection.
type Owner interface {
	// Broken is called when the member has failed.
	Broken()
	// ClientLeft is called when a write to the client fails. The member has failed, too.
	ClientLeft()
	// Unread is called if others wait because the client does not read. The owner ends it.
	Unread()
}

// A client is the writing side of a session's client (conn.Writer).
type client interface {
	TryLock() bool
	Lock()
	Unlock()
	IsFull() bool
	Append(p []byte) error
	Write(p []byte) (int, error)
}

// A Member is one session's part in a Pool. Its owner's goroutine calls the methods, unless they
// say otherwise. The owner calls Close.
type Member struct {
	pool   *Pool
	client client
	owner  Owner
	task   *loop.Task // runs the owner; nil: a goroutine does
	index  int        // of the connections to one server

	conn     atomic.Pointer[connection] // the last one that was used
	expected []turn                     // for the next Write
	failed   atomic.Bool                // replies will never come, or will not reach the client
	gone     atomic.Bool                // nothing more may be written to the client
	pending  atomic.Int64               // replies that the client does not have yet
	waits    atomic.Bool                // Wait needs a signal
	drained  chan struct{}              // a signal: nothing is pending, or the member has failed
	leaving  atomic.Pointer[time.Timer] // until Abandon; nil: the client has not left

	locked bool        // its client's writing side is locked; used by catchUp while behind, else by the reader
	behind atomic.Bool // catchUp writes to the client; set by the reader, cleared under the connection's mutex
	slow   atomic.Bool // others may have waited for it

	// The connection's mutex guards these.
	aside   []byte // came while the client took nothing
	charged int    // memory of aside, and of what catchUp writes
	ended   int    // replies that end there
	inside  bool   // a value goes on behind it
	broken  bool   // the connection has ended before all replies came
}

// NewMember makes a member whose replies go to client. The task runs the owner, which calls Write
// and Wait; nil: a goroutine does.
func (p *Pool) NewMember(client *conn.Writer, owner Owner, task *loop.Task) *Member {
	p.members.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return &Member{pool: p, client: client, owner: owner, task: task, index: p.next % connections, drained: make(chan struct{}, 1)}
}

// On tells whether Write would send to that server now.
func (m *Member) On(server Server, version wire.Version) bool {
	c := m.conn.Load()
	return c != nil && c.version == version && c.server == server && !c.isPast()
}

// TryJoin is Join if a connection is there already and Join would not wait. It returns false
// otherwise.
func (m *Member) TryJoin(server Server, version wire.Version) bool {
	if m.behind.Load() {
		return false
	}
	c := m.pool.open(laneKey{server, version, m.index})
	if c != nil {
		m.conn.Store(c)
	}
	return c != nil
}

// Join has Write send to this server from now on. It may dial. It waits until the earlier connection
// has nothing more to do for the member, because the mutex of that connection guards the bytes that
// are put aside. No reply may be pending.
func (m *Member) Join(server Server, version wire.Version, dial func(context.Context) (net.Conn, error)) *upstream.Failure {
	c, failure := m.pool.get(laneKey{server, version, m.index}, dial)
	if failure != nil {
		return failure
	}
	if before := m.conn.Load(); before != nil {
		before.awaitCaughtUp(m)
	}
	m.conn.Store(c)
	return nil
}

// Expect says how the commands of the next Write will be answered. Only ordinary replies to the
// client or to nobody are possible.
func (m *Member) Expect(e upstream.Expectation) {
	if e.Kind != upstream.Reply || e.To == upstream.ToOwner {
		panic("only ordinary replies can be shared")
	}
	m.expected = append(m.expected, turn{of: m, silent: e.To != upstream.ToClient, count: e.Count})
}

// Write sends the commands that Expect has announced. If the connection has ended, the member
// fails when its client has all that came.
func (m *Member) Write(p []byte) {
	if !m.conn.Load().send(m, p) {
		m.fail()
	}
	m.expected = m.expected[:0]
}

func (m *Member) fail() {
	m.failed.Store(true)
	m.signal()
}

// breaks is called when the connection has ended and the client has all that came.
func (m *Member) breaks() {
	m.fail()
	m.owner.Broken()
}

// clientLeft is called when a write to the client has failed.
func (m *Member) clientLeft() {
	if !m.gone.Swap(true) {
		m.fail()
		m.owner.ClientLeft()
	}
}

// isUnread is called when others wait because the client does not read.
func (m *Member) isUnread() {
	if !m.gone.Swap(true) {
		m.owner.Unread()
		m.fail()
	}
}

// answered is called when the client has n more replies.
func (m *Member) answered(n int) {
	if n > 0 && m.pending.Add(-int64(n)) == 0 {
		m.signal()
	}
}

func (m *Member) signal() {
	if !m.waits.Load() {
		return
	}
	select {
	case m.drained <- struct{}{}:
	default:
	}
	m.task.Unpark()
}

// Drained tells whether nothing is pending. Any goroutine may ask.
func (m *Member) Drained() bool { return m.pending.Load() == 0 }

// Failed tells whether the session must end. Any goroutine may ask.
func (m *Member) Failed() bool { return m.failed.Load() }

// IsIdle tells whether nothing is pending and Close does not wait. Any goroutine may ask.
func (m *Member) IsIdle() bool { return m.Drained() && !m.behind.Load() }

// IsSlow tells whether others may have waited for the client. It should get a connection of its
// own.
func (m *Member) IsSlow() bool { return m.slow.Load() }

// Wait returns when nothing is pending, or after limit if that is not 0. It returns false if
// replies are missing. On a loop, the limit must be 0.
func (m *Member) Wait(limit time.Duration) bool {
	m.waits.Store(true)
	defer m.waits.Store(false)
	var over <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		over = timer.C
	}
	for !m.Drained() && !m.Failed() {
		if m.task.OnLoop() {
			m.task.Park()
			continue
		}
		select {
		case <-m.drained: // maybe an old signal
		case <-over:
			return false
		}
	}
	return !m.Failed()
}

// Abandon makes Wait and Write return, because the client is cut off. Any goroutine may call it,
// also on a nil Member.
func (m *Member) Abandon() {
	if m == nil {
		return
	}
	m.gone.Store(true)
	m.fail()
	if c := m.conn.Load(); c != nil {
		c.wakeAll()
	}
}

// AbandonAfter is Abandon after a time, because the client sends no more and gets only what
// comes until then. Any goroutine may call it, also on a nil Member.
func (m *Member) AbandonAfter(limit time.Duration) {
	if m != nil {
		m.leaving.Store(time.AfterFunc(limit, m.Abandon))
	}
}

// Close leaves the pool. After it nothing is written to the client. The client's socket must have
// been closed. It waits only for a member that was not idle.
func (m *Member) Close() {
	m.Abandon()
	if t := m.leaving.Load(); t != nil {
		t.Stop()
	}
	if c := m.conn.Load(); c != nil {
		c.awaitCaughtUp(m)
	}
	m.pool.members.Add(-1)
}
