package rig

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Link is a relay between the proxy and one server. It can delay the server's answers, hold
// them back until the test lets them through, or break. It keeps the order of the bytes.
type Link struct {
	listener net.Listener
	target   atomic.Pointer[string] // the server's address
	delay    atomic.Int64           // nanoseconds
	held     atomic.Pointer[chan struct{}]
	down     atomic.Bool
	closed   atomic.Bool
	muted    [2]atomic.Bool // what the server would hear, what it says
	mu       sync.Mutex
	conns    []net.Conn
	wg       sync.WaitGroup
}

func StartLink(t testing.TB, target string) *Link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Link{listener: listener}
	l.target.Store(&target)
	l.wg.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *Link) Addr() string { return l.listener.Addr().String() }

// Lead makes the link one to another server, and breaks every connection.
func (l *Link) Lead(target string) {
	l.target.Store(&target)
	l.Cut()
}

// Delay holds back every later answer for d.
func (l *Link) Delay(d time.Duration) { l.delay.Store(int64(d)) }

// Hold holds back every later answer. The function that it returns lets them through.
func (l *Link) Hold() (release func()) {
	held := make(chan struct{})
	l.held.Store(&held)
	return sync.OnceFunc(func() {
		l.held.CompareAndSwap(&held, nil)
		close(held)
	})
}

// Mute loses all later bytes in one direction or in both, and no end is told: connections are half open, as when a
// machine vanishes from the network. A connection that has lost bytes never delivers any again, and ends when Mute
// lets bytes through: its kernel would have given up.
func (l *Link) Mute(toServer, fromServer bool) {
	l.muted[0].Store(toServer)
	l.muted[1].Store(fromServer)
}

// Cut breaks every connection. Clients can connect again at once.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
}

// SetDown(true) cuts the link and breaks every new connection until SetDown(false).
func (l *Link) SetDown(down bool) {
	l.down.Store(down)
	if down {
		l.Cut()
	}
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", *l.target.Load())
		if err != nil {
			client.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, client, server)
		l.mu.Unlock()
		if l.down.Load() {
			l.Cut()
		}
		l.wg.Go(func() { l.pump(server, client, &l.muted[0], false) })
		l.wg.Go(func() { l.pump(client, server, &l.muted[1], true) })
	}
}

// pump copies until one side ends, then closes both.
func (l *Link) pump(to, from net.Conn, muted *atomic.Bool, slow bool) {
	type chunk struct {
		due  time.Time
		held *chan struct{}
		data []byte
	}
	chunks := make(chan chunk, 1024)
	var wg sync.WaitGroup
	wg.Go(func() {
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if c.held != nil {
				<-*c.held
			}
			if _, err := to.Write(c.data); err != nil {
				from.Close()
			}
		}
		to.Close()
	})
	lost := false
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if muted.Load() {
			lost = true
			if err != nil { // nobody hears of the end before bytes come through again
				l.untilHeard(muted)
				break
			}
			continue
		}
		if lost {
			break
		}
		if n > 0 {
			c := chunk{data: buffer[:n], due: time.Now()}
			if slow {
				c.due = c.due.Add(time.Duration(l.delay.Load()))
				c.held = l.held.Load()
			}
			chunks <- c
		}
		if err != nil {
			break
		}
	}
	close(chunks)
	wg.Wait()
	from.Close()
}

func (l *Link) untilHeard(muted *atomic.Bool) {
	for muted.Load() && !l.closed.Load() {
		time.Sleep(time.Millisecond)
	}
}

func (l *Link) close() {
	l.closed.Store(true)
	l.listener.Close()
	l.Cut()
	l.wg.Wait()
}
