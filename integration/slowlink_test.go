package integration

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slowLink stands between the proxy and one server and can hold back what
// the server answers, or break. Order is kept.
type slowLink struct {
	listener net.Listener
	target   string
	hold     atomic.Int64 // nanoseconds
	down     atomic.Bool
	mu       sync.Mutex
	conns    []net.Conn
	wg       sync.WaitGroup
}

func startSlowLink(t testing.TB, target string) *slowLink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &slowLink{listener: listener, target: target}
	l.wg.Go(l.accept)
	t.Cleanup(l.close)
	return l
}

func (l *slowLink) addr() string { return l.listener.Addr().String() }

// delay holds back every answer that comes from now on for so long.
func (l *slowLink) delay(d time.Duration) { l.hold.Store(int64(d)) }

// cut breaks every connection. New ones are possible at once.
func (l *slowLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
}

// setDown(true) cuts the link and lets no connection live until setDown(false).
func (l *slowLink) setDown(down bool) {
	l.down.Store(down)
	if down {
		l.cut()
	}
}

func (l *slowLink) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", l.target)
		if err != nil {
			client.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, client, server)
		l.mu.Unlock()
		if l.down.Load() {
			l.cut()
		}
		l.wg.Go(func() { l.pump(server, client, false) })
		l.wg.Go(func() { l.pump(client, server, true) })
	}
}

// pump copies until one side ends, then closes both.
func (l *slowLink) pump(to, from net.Conn, slow bool) {
	type chunk struct {
		due  time.Time
		data []byte
	}
	chunks := make(chan chunk, 1024)
	var wg sync.WaitGroup
	wg.Go(func() {
		for c := range chunks {
			time.Sleep(time.Until(c.due))
			if _, err := to.Write(c.data); err != nil {
				from.Close()
			}
		}
		to.Close()
	})
	for {
		buffer := make([]byte, 16<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			c := chunk{data: buffer[:n], due: time.Now()}
			if slow {
				c.due = c.due.Add(time.Duration(l.hold.Load()))
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

func (l *slowLink) close() {
	l.listener.Close()
	l.cut()
	l.wg.Wait()
}
