package upstream

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

const (
	// mostUnsent bounds the bytes that wait to be sent on a shared connection, and mostUnsentAlone those on a
	// member's own. While there are more, Send waits.
	mostUnsent      = 1 << 20
	mostUnsentAlone = 64 << 10
	// muchGathered is the bytes of commands that do not wait for others of the same input.
	muchGathered = 32 << 10
	// mostUnanswered and mostReplies bound the commands that a member has unanswered on a shared connection, in bytes
	// and in number, and so what others may have to wait for.
	mostUnanswered = 64 << 10
	mostReplies    = 1024
	// drainSilence bounds the silence of a server to which no more commands will go.
	drainSilence = 10 * time.Second
	// keptCapture is the most memory for replies to the owner that is kept for the next ones.
	keptCapture = 32 << 10
)

// An Owner is the session of a member. The loop calls it. No method may wait, or write to the client.
type Owner interface {
	// Confirmed is called with each confirmation, in one step with the bytes that say so to the client:
	// the client's writing side is locked.
	Confirmed(wire.Confirmation)
	// Unread is called if others wait because the client does not read. The owner ends it.
	Unread()
}

// Options are the things that a member needs from its owner.
type Options struct {
	Owner    Owner
	Pool     *Pool
	Captures func() int64 // the most bytes of replies that Wait returns
}

// A Member is one session's part in the connections to the ordinary Redis. At any time it has none, one
// for itself, or uses one of the pool's. Its task calls the methods, unless they say otherwise. The
// owner calls Close.
type Member struct {
	Options
	client *Writer    // of the owner's client
	task   *loop.Task // the owner's
	unpark func()     // task.Unpark, as one value
	index  int        // of the connections to one server

	conn     atomic.Pointer[Conn] // the last one that was used; nil: none, or its own was closed
	gathered []byte               // commands for the next Send; a buffer of gathers, or a copy while Send waits, or nil
	long     []byte               // a command that follows them
	expected []Expectation        // what answers them
	failed   atomic.Bool          // replies will never come, or will not reach the client
	gone     atomic.Bool          // nothing more may be written to the client
	slow     atomic.Bool          // others may have waited for it
	drains   atomic.Int64         // since when no more commands came, in ns; 0: some may come
	pending  atomic.Int64         // replies that are not at their destinations yet
	waits    atomic.Bool          // the task waits for that

	unanswered, unansweredBytes int // commands since no reply was pending on a shared connection

	// The loop uses these while replies are pending, and the task when none is.
	captured []byte
	charged  int  // bytes of memory that captured takes
	overflow bool // captured is incomplete

	waited int // the bytes that waited for the client when reading stopped for it. Only the loop uses it
}

// gathers are buffers for commands, so that a session that sends nothing has none.
var gathers = sync.Pool{New: func() any { return new([2 * muchGathered]byte) }}

// NewMember makes a member that has no connection.
func NewMember(o Options) *Member {
	return &Member{Options: o, index: o.Pool.nextIndex()}
}

// Begin says which task runs the owner, and who gets the replies. It comes before all methods but those
// that any goroutine may call.
func (m *Member) Begin(task *loop.Task, client *Writer) {
	m.task, m.unpark, m.client = task, task.Unpark, client
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
	c := &Conn{pool: m.Pool, only: m, mostUnsent: mostUnsentAlone, version: login.Version}
	c.SetID(login.id)
	if failure := c.attach(dialled); failure != nil {
		return false, failure
	}
	m.leaveShared()
	m.conn.Store(c)
	c.sock.ReadLike(m.client.to)
	c.sock.Resume()
	return known, nil
}

// MayShare tells whether a command of so many bytes may go over a shared connection: the member has none for
// itself, others have not waited for it, and it has not much unanswered. isOn tells whether the command can
// be forwarded, because the member uses such a connection, to the server that it has joined last.
func (m *Member) MayShare(bytes int, version wire.Version) (yes, isOn bool) {
	c := m.conn.Load()
	if c != nil && c.only != nil || m.slow.Load() {
		return false, false
	}
	if m.pending.Load() == 0 && len(m.expected) == 0 {
		m.unanswered, m.unansweredBytes = 0, 0
	}
	m.unanswered++
	m.unansweredBytes += bytes
	yes = m.unanswered <= mostReplies && m.unansweredBytes <= mostUnanswered
	return yes, yes && c != nil && c.version == version && !c.over.Load() && !c.stale.Load()
}

// Join has the member use a connection to this server from now on that others use, too. Without a dial it only
// takes one that is there already, and returns false if there is none. No reply may be pending, and
// the member has no connection for itself.
func (m *Member) Join(server Server, version wire.Version, dial Dial) (joined bool, failure *Failure) {
	c, failure := m.Pool.get(laneKey{server, version, m.index}, dial)
	if c == nil {
		return false, failure
	}
	if m.conn.Swap(c) == nil {
		m.Pool.members.Add(1)
	}
	return true, nil
}

// leaveShared is called when the member uses shared connections no more.
func (m *Member) leaveShared() {
	if c := m.conn.Load(); c != nil && c.only == nil {
		m.Pool.members.Add(-1)
	}
}

// Forward adds commands to those of the next Send. e says how they will be answered. There must be a
// connection. If it returns true, Send comes next: much is gathered, or commands that are long were not copied.
func (m *Member) Forward(commands []byte, e Expectation) (full bool) {
	c := m.conn.Load()
	last := len(m.expected) - 1
	switch {
	case c.pipe.Load():
	case c.only == nil && (e.Kind != Reply || e.To == ToOwner):
		panic("only ordinary replies can be shared")
	case e.Kind == Stream && e.Count == 0 && last < 0 && m.Drained():
		c.pipe.Store(true)
	case last >= 0 && e.Kind == Reply && m.expected[last].Kind == Reply && m.expected[last].To == e.To:
		m.expected[last].Count += e.Count
	default:
		m.expected = append(m.expected, e)
	}
	if len(commands) > muchGathered {
		m.long = commands
		return true
	}
	if m.gathered == nil {
		m.gathered = gathers.Get().(*[2 * muchGathered]byte)[:0]
	}
	m.gathered = append(m.gathered, commands...)
	return len(m.gathered) > muchGathered
}

// Gathers tells whether commands wait for Send.
func (m *Member) Gathers() bool { return len(m.gathered) > 0 || m.long != nil }

// MustWait tells whether Send will wait: the server takes no more now, or a long command is sent as it is.
func (m *Member) MustWait() bool {
	c := m.conn.Load()
	return m.long != nil || c.sock.Waiting() > c.mostUnsent
}

// Send sends the commands in one write. It waits while the server takes no more. If the connection has
// ended, the member fails. On a connection that others use, commands and turns enter in one step, long commands too:
// otherwise the bytes of others could come between, and each would get the replies of another.
func (m *Member) Send() {
	c := m.conn.Load()
	if c.sock.Waiting() > c.mostUnsent {
		// If a server stands still, all sessions may wait for it, and a whole buffer of gathers for each would be memory
		// without bound. The copy is no longer than the input, which counts.
		m.gathered = slices.Clone(m.gathered)
		for !c.over.Load() && !m.gone.Load() && c.sock.WhenDrained(c.mostUnsent, m.unpark) {
			m.task.Park()
		}
	}
	if m.drains.Load() != 0 {
		m.Drain() // the server has its time for these commands
	}
	c.mu.Lock()
	over := c.over.Load()
	for i := range m.expected {
		e := &m.expected[i]
		replies := e.Count
		if e.Kind == Confirmations {
			replies = 1 // their number is not known yet
		}
		m.pending.Add(int64(replies))
		if !over && (e.Count > 0 || e.Kind != Reply) {
			c.queue.add(m, e)
		}
	}
	long := m.long
	if !over {
		_ = c.sock.Write(m.gathered)
		if c.only == nil && long != nil {
			_ = c.sock.Write(long)
			long = nil
		}
	}
	c.mu.Unlock()
	m.expected = m.expected[:0]
	if cap(m.gathered) == 2*muchGathered {
		gathers.Put((*[2 * muchGathered]byte)(m.gathered[:2*muchGathered]))
	}
	m.gathered, m.long = nil, nil
	switch {
	case over:
		m.fail()
	case long != nil: // is not copied
		c.sock.Send(m.task, long)
	}
}

// fail says that replies will never come, or will not reach the client.
func (m *Member) fail() {
	m.failed.Store(true)
	if m.conn.Load() != nil { // Begin was called before
		m.task.Unpark()
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

// Wait returns when no reply is pending and the client has everything that came. It returns false if
// replies will never come. replies are those for the owner, valid until the next Forward. They are nil if
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
	if cap(m.captured) > keptCapture {
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
	if length > keptCapture {
		if !m.Pool.reserve(len(p)) {
			m.overflow = true
			return
		}
		m.charged += len(p)
	}
	m.captured = append(m.captured, p...)
}

func (m *Member) release() {
	m.Pool.reserve(-m.charged)
	m.charged = 0
}
