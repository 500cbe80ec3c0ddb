package main

import (
	"io"
	"net"
	"sync"
)

// pump is a proxy that inspects nothing. It has one connection to the target for each
// client and copies bytes both ways.
type pump struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	conns    []net.Conn
	wg       sync.WaitGroup
}

// startPump starts a pump that is closed when the section ends.
func (b *bench) startPump(target string) *pump {
	p := &pump{listener: must(net.Listen("tcp", "127.0.0.1:0")), target: target}
	p.wg.Go(p.accept)
	b.atEnd(p.close)
	return p
}

func (p *pump) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *pump) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		p.mu.Unlock()
		p.wg.Go(func() { carry(far, near) })
		p.wg.Go(func() { carry(near, far) })
	}
}

// carry returns when either end closes, and then closes both. It hides from io.Copy that both
// ends are sockets. Otherwise io.Copy would use the kernel's splice, which costs more than it
// saves for commands of a few bytes.
func carry(to, from net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
	_ = to.Close()
	_ = from.Close()
}

func (p *pump) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
