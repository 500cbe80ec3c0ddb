package shared

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

const (
	// mostWaiting bounds the bytes of unsent commands. While there are more, Write waits.
	mostWaiting = 1 << 20
	// mostKept is the largest buffer that is kept for later commands.
	mostKept = 256 << 10
)

// A turn is a number of successive replies to one member.
type turn struct {
	of     *Member
	silent bool // the client wants no reply
	count  int
}

// A connection is used by several members. The loop reads and writes it.
type connection struct {
	pool    *Pool
	sock    *conn.Socket
	server  Server
	version wire.Version
	stale   atomic.Bool  // no member begins to use it any more
	owed    atomic.Int64 // replies that are missing

	writer *conn.Writer // of sock
	atEnd  func()       // flush, as one value for all rounds
	queued atomic.Bool  // the loop will flush
	sent   []byte       // the bytes that were written last; only flush uses them

	mu      sync.Mutex
	changed sync.Cond // out has room, full has changed, a member is not behind any more, or the connection or a member has ended
	out     []byte    // commands to be written
	queue   []turn
	head    int           // queue[head:] are not begun
	over    atomic.Bool   // changed under mu
	full    []*Member     // too much was put aside for these: nothing is read
	stopped turn          // the current one when reading stopped
	taken   int           // bytes that were put aside for full[0] and that its client took
	delay   time.Duration // for which slow clients have delayed others lately

	// Only the watch uses these.
	had     int // the value of taken when it looked last
	retired int // how often it was stale

	// Only the loop uses these.
	scanner resp.Scanner
	turn    turn // the current one
	inside  bool // a value has begun and not ended
	push    bool // that value answers nothing
}

func newConnection(p *Pool, key laneKey, sock *conn.Socket) *connection {
	c := &connection{pool: p, sock: sock, server: key.Server, version: key.version, writer: conn.NewWriter(sock)}
	c.changed.L = &c.mu
	c.atEnd = c.flush
	return c
}

// send adds a member's commands and what it expects. It returns false if the member must fail at
// once, because the connection or the member has ended.
func (c *connection) send(m *Member, commands []byte) bool {
	entered, mustLeave := c.enter(m, commands)
	if mustLeave {
		m.task.Leave()
		entered, _ = c.enter(m, commands)
	}
	if !entered {
		return false
	}
	if !c.queued.Swap(true) {
		c.pool.loop.AtEnd(c.atEnd)
	}
	return true
}

// enter is send without having the loop flush. It waits for room, but not on a loop, which may be the
// one that makes room: then it adds nothing and returns mustLeave as true.
func (c *connection) enter(m *Member, commands []byte) (entered, mustLeave bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > mostWaiting && !c.over.Load() && !m.gone.Load() {
		if m.task.OnLoop() {
			return false, true
		}
		c.changed.Wait()
	}
	if m.gone.Load() || c.over.Load() {
		return c.failsLater(m), false
	}
	c.out = append(c.out, commands...)
	for _, t := range m.expected {
		m.pending.Add(int64(t.count))
		c.owed.Add(int64(t.count))
		c.add(t)
	}
	return true, false
}

// failsLater tells whether the client still gets what came before the connection ended. Then
// catchUp fails the member, and not before: a member that has failed may close its client. The new
// replies are pending until then, so Wait does not take the old ones for all.
func (c *connection) failsLater(m *Member) bool {
	if m.gone.Load() || !m.behind.Load() {
		return false
	}
	m.broken = true
	for _, t := range m.expected {
		m.pending.Add(int64(t.count))
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

// catch is deferred. It ends the connection after a panic. Other clients hold locks through this
// process.
func (c *connection) catch() {
	if reason := recover(); reason != nil {
		c.defect(reason)
	}
}

func (c *connection) defect(reason any) {
	c.pool.outOfSync(fmt.Errorf("panic: %v", reason))
	c.sock.Abandon()
}

// unsentCommands returns the commands to be written. They are valid until the next call.
func (c *connection) unsentCommands() []byte {
	if cap(c.sent) > mostKept {
		c.sent = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent, c.out = c.out, c.sent[:0]
	c.changed.Broadcast()
	return c.sent
}

func (c *connection) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// isPast tells whether a member needs another connection.
func (c *connection) isPast() bool { return c.over.Load() || c.stale.Load() }

// isIdle tells whether no reply is missing.
func (c *connection) isIdle() bool { return c.owed.Load() == 0 }

// unread counts the time for which slow clients delay others. It returns those to be ended. The
// watch calls it.
func (c *connection) unread() []*Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	reads := c.taken-c.had >= readsFast
	c.had = c.taken
	if reads || !c.othersWait() {
		c.delay = max(c.delay-watchEvery/delayEnds, 0)
		return nil
	}
	for _, m := range c.full {
		m.slow.Store(true)
	}
	c.delay = min(c.delay, mostDelay) + watchEvery
	return c.tooSlow()
}

// tooSlow returns the members to be ended: if slow clients have delayed others for too long, all that
// are full. The caller holds mu.
func (c *connection) tooSlow() []*Member {
	if c.delay < mostDelay || !c.othersWait() {
		return nil
	}
	return slices.Clone(c.full)
}

// othersWait tells whether reading has stopped, and replies are missing that somebody else still
// wants. The caller holds mu.
func (c *connection) othersWait() bool {
	waits := func(t turn) bool { return t.count > 0 && !t.of.gone.Load() && !slices.Contains(c.full, t.of) }
	return len(c.full) > 0 && (waits(c.stopped) || slices.ContainsFunc(c.queue[c.head:], waits))
}
