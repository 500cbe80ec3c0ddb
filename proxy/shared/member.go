package shared

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
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

// A Member is one session's part in a Pool. Its owner's goroutine calls the methods, unless they
// say otherwise. The owner calls Close.
type Member struct {
	pool   *Pool
	client *conn.Writer
	owner  Owner
	index  int // of the connections to one server

	conn     atomic.Pointer[connection] // the last one that was used
	expected []turn                     // for the next Write
	failed   atomic.Bool                // replies will never come, or will not reach the client
	gone     atomic.Bool                // nothing more may be written to the client
	pending  atomic.Int64               // changed under the connection's mutex
	drained  chan struct{}              // a signal: nothing is pending, or the member has failed
	leaving  atomic.Pointer[time.Timer] // until Abandon; nil: the client has not left
}

// NewMember makes a member whose replies go to client.
func (p *Pool) NewMember(client *conn.Writer, owner Owner) *Member {
	p.members.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return &Member{pool: p, client: client, owner: owner, index: p.next % connections, drained: make(chan struct{}, 1)}
}

// On tells whether Write would send to that server now.
func (m *Member) On(server Server, version wire.Version) bool {
	c := m.conn.Load()
	return c != nil && c.version == version && c.server == server && !c.isPast()
}

// Join has Write send to that server from now on. It may dial. No reply may be pending.
func (m *Member) Join(server Server, version wire.Version, dial func(context.Context) (net.Conn, error)) *upstream.Failure {
	c, failure := m.pool.get(laneKey{server, version, m.index}, dial)
	if failure != nil {
		return failure
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
// fails.
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

func (m *Member) signal() {
	select {
	case m.drained <- struct{}{}:
	default:
	}
}

// Drained tells whether nothing is pending. Any goroutine may ask.
func (m *Member) Drained() bool { return m.pending.Load() == 0 }

// Failed tells whether the session must end. Any goroutine may ask.
func (m *Member) Failed() bool { return m.failed.Load() }

// Wait returns when nothing is pending, or after limit if that is not 0. It returns false if
// replies are missing.
func (m *Member) Wait(limit time.Duration) bool {
	var over <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		over = timer.C
	}
	for !m.Drained() && !m.Failed() {
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
// been closed.
func (m *Member) Close() {
	m.Abandon()
	if t := m.leaving.Load(); t != nil {
		t.Stop()
	}
	if c := m.conn.Load(); c != nil {
		c.release(m)
	}
	m.pool.members.Add(-1)
}
