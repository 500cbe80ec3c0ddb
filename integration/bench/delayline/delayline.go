// Package delayline makes a server seem far away.
package delayline

import (
	"net"
	"sync"
	"time"
)

// A Line is a relay between the proxy and a server that is to seem far away. The bytes of
// both sides arrive later by a fixed delay, in order, at full throughput.
type Line struct {
	listener net.Listener
	target   string
	oneWay   time.Duration
	mu       sync.Mutex
	conns    []net.Conn
	wg       sync.WaitGroup
}

// Start starts a relay to a target. The caller closes it.
func Start(target string, oneWay time.Duration) (*Line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Line{listener: listener, target: target, oneWay: oneWay}
	l.wg.Go(func() { l.accept() })
	return l, nil
}

// Addr is the address to dial instead of the target's.
func (l *Line) Addr() string { return l.listener.Addr().String() }

func (l *Line) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", l.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		l.mu.Lock()
		l.conns = append(l.conns, near, far)
		l.mu.Unlock()
		l.wg.Go(func() { l.carry(far, near) })
		l.wg.Go(func() { l.carry(near, far) })
	}
}

type parcel struct {
	buffer *[16 << 10]byte
	length int
	due    time.Time
}

// buffers are used again, or the garbage of the relay would slow down what is measured.
var buffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// carry returns when either end closes, and then closes both.
func (l *Line) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	under := make(chan parcel, 1<<12)
	l.wg.Go(func() {
		for p := range under {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.buffer[:p.length]); err != nil {
				_ = from.Close() // so that nothing more arrives
			}
			buffers.Put(p.buffer)
		}
	})
	defer close(under)
	for {
		buffer := buffers.Get().(*[16 << 10]byte)
		n, err := from.Read(buffer[:])
		if n > 0 {
			under <- parcel{buffer, n, time.Now().Add(l.oneWay)}
		}
		if err != nil {
			return
		}
	}
}

// Close ends all connections and waits for them.
func (l *Line) Close() {
	_ = l.listener.Close()
	l.mu.Lock()
	for _, conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.wg.Wait()
}
