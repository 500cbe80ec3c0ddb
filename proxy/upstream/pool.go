package upstream

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

const (
	// connections is the number of connections to one server with one RESP version. With one
	// instead of two a command took 0.92x to 1.19x of the processor time, which is no gain, and a
	// long reply would delay everybody.
	connections = 2
	// stuck is how long a server may read no commands. Then its connection is closed.
	stuck = 5 * time.Minute
	// unusedAfter is the silence after which an idle connection is closed. After a reload to
	// upstream_connections: own nobody uses it any more.
	unusedAfter = time.Minute
	// leaveEvery is the least time between two leaves because of READONLY, so a server that remains a
	// replica is not dialled again and again.
	leaveEvery = time.Second
	// staleLooks is the number of looks after which a stale connection is closed. A session that
	// has just chosen it may still send.
	staleLooks = 100
)

// A Server is where connections lead, and how the proxy logs in there. Two that are equal may
// share connections.
type Server struct {
	Name, User, Password string
	DB                   int
}

// A Pool has the shared connections of a process, and what all connections need. Any goroutine may use
// it. The owner calls Close.
type Pool struct {
	running context.Context // until Close
	stop    context.CancelFunc
	loop    *loop.Loop // reads and writes the connections
	reserve func(n int) bool
	wrong   func(error)

	mu      sync.Mutex
	lanes   map[laneKey]*lane
	all     []*Conn   // of lanes, and stale ones
	left    time.Time // when a replica was left
	watched bool      // the watch has been started
	closed  bool
	ended   sync.WaitGroup
	members atomic.Int64 // that use a shared connection
	next    atomic.Int64
}

// A laneKey identifies one of the connections to a server.
type laneKey struct {
	Server
	version wire.Version
	index   int
}

// A lane has a connection, or a dial under way. conn and failure are valid when that is over.
type lane struct {
	dialled chan struct{} // closed when the dial is over
	conn    *Conn
	failure *Failure
}

func (l *lane) isDialled() bool {
	select {
	case <-l.dialled:
		return true
	default:
		return false
	}
}

// isOver tells whether a new dial is needed.
func (l *lane) isOver() bool { return l.isDialled() && (l.conn == nil || l.conn.isPast()) }

// NewPool makes a Pool without connections. The loop reads and writes them. reserve takes memory for replies to
// owners, or returns false. A negative number gives memory back. wrong is called if a server sends a reply that
// answers no command, and with loop.ErrPanicked. Then the connection ends.
func NewPool(l *loop.Loop, reserve func(n int) bool, wrong func(error)) *Pool {
	p := &Pool{loop: l, reserve: reserve, wrong: wrong, lanes: map[laneKey]*lane{}}
	p.running, p.stop = context.WithCancel(context.Background())
	return p
}

// Close ends all connections. Members with replies pending fail.
func (p *Pool) Close() {
	p.stop()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.all {
		c.sock.Abandon()
	}
	p.mu.Unlock()
	p.ended.Wait()
}

// nextIndex spreads members over the connections to a server.
func (p *Pool) nextIndex() int { return int(p.next.Add(1) % connections) }

// Counts are the numbers of open shared connections, and of the members that use one.
func (p *Pool) Counts() (open, members int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetOver()
	return len(p.all), int(p.members.Load())
}

// forgetOver forgets connections that have ended. The caller holds mu.
func (p *Pool) forgetOver() {
	for key, l := range p.lanes {
		if l.isOver() {
			delete(p.lanes, key)
		}
	}
	p.all = slices.DeleteFunc(p.all, func(c *Conn) bool { return c.over.Load() })
}

// watch looks after slow clients and stuck servers until Close.
func (p *Pool) watch() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.running.Done():
			return
		case now := <-ticker.C:
			p.mu.Lock()
			p.forgetOver()
			for _, c := range p.all {
				c.sock.Do(func() { c.look(now) })
			}
			p.mu.Unlock()
		}
	}
}

// look ends clients that do not read, and the connection if its server reads nothing or nobody uses it.
// The loop calls it.
func (c *Conn) look(now time.Time) {
	c.countDelay()
	if c.sock.Silent(now) > unusedAfter && c.isIdle() {
		c.stale.Store(true)
	}
	if c.stale.Load() {
		c.retired++
	}
	if c.retired > staleLooks && c.isIdle() || c.sock.Stalled(now) > stuck {
		c.sock.Abandon()
	}
}

// leave has members get new connections to a server that has become a replica. That holds for all
// of them: a client that connects again must not meet the replica a second time.
func (p *Pool) leave(replica Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.left) < leaveEvery {
		return
	}
	p.left = time.Now()
	for _, c := range p.all {
		if c.server == replica {
			c.stale.Store(true)
		}
	}
}

// get returns a connection to the server. It dials if there is none, once for all who wait. Without a dial it
// returns nil then.
func (p *Pool) get(key laneKey, dial Dial) (*Conn, *Failure) {
	p.mu.Lock()
	l := p.lanes[key]
	switch {
	case p.closed:
		p.mu.Unlock()
		return nil, &Failure{Reply: wire.ErrUpstreamDown, Err: net.ErrClosed}
	case dial == nil && (l == nil || !l.isDialled() || l.isOver()):
		p.mu.Unlock()
		return nil, nil
	case l == nil || l.isOver():
		l = &lane{dialled: make(chan struct{})}
		p.lanes[key] = l
		p.mu.Unlock()
		return p.dial(l, key, dial)
	}
	p.mu.Unlock()
	<-l.dialled
	return l.conn, l.failure
}

// dial opens the connection of a lane that nobody else dials.
func (p *Pool) dial(l *lane, key laneKey, dial Dial) (*Conn, *Failure) {
	defer func() { // also after a panic
		if l.conn == nil && l.failure == nil {
			l.failure = &Failure{Reply: wire.ErrUpstreamDown, Err: errors.New("panic during the dial")}
		}
		close(l.dialled)
	}()
	login := &Login{User: key.User, Password: key.Password, ClientSettings: ClientSettings{Version: key.version, DB: key.DB}}
	dialled, _, failure := dialAndLogIn(p.running, dial, login)
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &Conn{pool: p, server: key.Server, mostUnsent: mostUnsent, version: key.version, release: p.ended.Done}
	switch {
	case failure != nil:
		l.failure = failure
		return nil, failure
	case p.closed:
		_ = dialled.Close()
		l.failure = &Failure{Reply: wire.ErrUpstreamDown, Err: net.ErrClosed}
		return nil, l.failure
	}
	p.ended.Add(1)
	if l.failure = c.attach(dialled); l.failure != nil {
		p.ended.Done()
		return nil, l.failure
	}
	if !p.watched {
		p.watched = true
		p.ended.Go(p.watch)
	}
	c.sock.ReadFirst()
	c.sock.Resume()
	l.conn = c
	p.all = append(p.all, c)
	return c, nil
}
