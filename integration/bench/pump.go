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
	conns    map[net.Conn]bool
	wg       sync.WaitGroup
}

// startPump starts a pump that is closed when the section ends.
func (b *bench) startPump(target string) *pump {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	p := &pump{listener: listener, target: target, conns: map[net.Conn]bool{}}
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
		p.wg.Go(func() { p.serve(near) })
	}
}

func (p *pump) serve(near net.Conn) {
	defer near.Close()
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer far.Close()
	p.hold(near, far)
	defer p.release(near, far)
	var back sync.WaitGroup
	back.Go(func() {
		copyBytes(near, far)
		_ = near.Close()
	})
	copyBytes(far, near)
	_ = far.Close()
	back.Wait()
}

// copyBytes hides from io.Copy that both ends are sockets. Otherwise io.Copy would use the
// kernel's splice, which costs more than it saves for commands of a few bytes.
func copyBytes(to, from net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from})
}

func (p *pump) hold(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
}

func (p *pump) release(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.conns, conn)
	}
}

func (p *pump) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}
