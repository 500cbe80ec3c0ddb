package shared

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

const (
	// mostWaiting is the number of bytes of unsent commands from which on Write waits.
	mostWaiting = 1 << 20
	// mostKept is the largest buffer that is used again.
	mostKept = 256 << 10
)

// A turn is a number of successive replies to one member.
type turn struct {
	of     *Member
	silent bool // the client wants no reply
	count  int
}

// A connection is used by several members.
type connection struct {
	sock      *conn.Socket
	server    Server
	version   wire.Version
	outOfSync func(error)
	unsent    chan struct{} // a signal: out is not empty
	done      chan struct{} // the reader has ended
	began     time.Time
	stale     atomic.Bool // no member begins to use it any more

	mu      sync.Mutex
	changed sync.Cond // out has room, sending has changed, or the connection or a member has ended
	out     []byte    // commands to be written
	queue   []turn
	head    int         // queue[head:] are not begun
	turns   int         // that the reader has begun
	owed    int         // replies that are missing
	passed  int         // bytes written to clients
	over    atomic.Bool // changed under mu
	sending *Member     // the reader writes to its client

	// Only the watch uses these.
	watched int // the turn that it saw last
	had     int // what passed was then
	looks   int // how often the reader waited in this turn while others waited
	retired int // how often it was stale

	// Only the reader uses these.
	scanner resp.Scanner
	turn    turn // the current one
	inside  bool // a value has begun and not ended
	push    bool // that value answers nothing
	locked  bool // the client's writing side is locked
}

func newConnection(key laneKey, sock *conn.Socket, outOfSync func(error)) *connection {
	c := &connection{
		sock: sock, server: key.Server, version: key.version, outOfSync: outOfSync,
		unsent: make(chan struct{}, 1), done: make(chan struct{}), began: time.Now(),
	}
	c.changed.L = &c.mu
	return c
}

// send adds a member's commands and what it expects. It returns false if the connection or the
// member has ended.
func (c *connection) send(m *Member, commands []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > mostWaiting && !c.over.Load() && !m.gone.Load() {
		c.changed.Wait()
	}
	if c.over.Load() || m.gone.Load() {
		return false
	}
	c.out = append(c.out, commands...)
	for _, t := range m.expected {
		m.pending.Add(int64(t.count))
		c.owed += t.count
		c.add(t)
	}
	select {
	case c.unsent <- struct{}{}:
	default:
	}
	return true
}

func (c *connection) add(t turn) {
	if c.head == len(c.queue) {
		c.queue, c.head = c.queue[:0], 0
	} else if last := &c.queue[len(c.queue)-1]; last.of == t.of && last.silent == t.silent {
		last.count += t.count
		return
	}
	if c.head > 64 && c.head > len(c.queue)/2 {
		left := copy(c.queue, c.queue[c.head:])
		clear(c.queue[left:])
		c.queue, c.head = c.queue[:left], 0
	}
	c.queue = append(c.queue, t)
}

// contain ends the connection if do panics. Other clients hold locks through this process.
func (c *connection) contain(do func()) {
	defer func() {
		if reason := recover(); reason != nil {
			c.outOfSync(fmt.Errorf("panic: %v", reason))
			c.sock.Abandon()
		}
	}()
	do()
}

// write is the writer. It sends all that is there in one write, until the connection ends.
func (c *connection) write() {
	var sent []byte
	for {
		select {
		case <-c.unsent:
		case <-c.done:
			return
		}
		runtime.Gosched() // the commands of other sessions that are ready go in the same write
		c.mu.Lock()
		sent, c.out = c.out, sent[:0]
		c.changed.Broadcast()
		c.mu.Unlock()
		if _, err := c.sock.Write(sent); err != nil {
			c.sock.Abandon()
		}
		if cap(sent) > mostKept {
			sent = nil
		}
	}
}

func (c *connection) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// release returns when nothing is written to the member's client any more.
func (c *connection) release(m *Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.sending == m {
		c.changed.Wait()
	}
}

// isPast tells whether a member needs another connection.
func (c *connection) isPast() bool { return c.over.Load() || c.stale.Load() }

// isIdle tells whether no reply is missing.
func (c *connection) isIdle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owed == 0 && c.sending == nil
}

// unread returns a member whose client does not read, or reads slowly, while others wait. The
// watch calls it.
func (c *connection) unread() *Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.turns != c.watched {
		c.watched, c.looks = c.turns, 0
	}
	reads := c.passed-c.had >= readsFast
	c.had = c.passed
	if reads || c.sending == nil || !c.othersWait() {
		return nil
	}
	if c.looks++; c.looks < unreadLooks {
		return nil
	}
	c.looks = 0
	return c.sending
}

func (c *connection) othersWait() bool {
	for _, t := range c.queue[c.head:] {
		if t.of != c.sending && !t.of.gone.Load() {
			return true
		}
	}
	return false
}
