package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
)

func TestPanicEndsOneSession(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	other, client := p.dial(t), p.dial(t)
	other.ask("GET a\r\n", "$-1\r\n")
	client.ask("GET a\r\n", "$-1\r\n")
	client.send("GET lock:panic\r\n")
	client.expectEnd("")
	other.ask("GET a\r\nGET lock:a\r\n", "$-1\r\n$-1\r\n")
	eventually(t, "the session is gone, its upstream connection too", func() bool {
		return p.sessionCount() == 1 && redis.Settle(t) == 2
	})
}

func TestDrain(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	idle, busy, forwarding := p.dial(t), p.dial(t), p.dial(t)
	idle.ask("PING\r\n", "+PONG\r\n")
	forwarding.ask("GET a\r\n", "$-1\r\n")
	busy.send("SET lock:slow 1 NX\r\nGET a\r\n")
	<-p.locks.entered
	ended := make(chan error, 1)
	go func() { ended <- p.clients.Shutdown(t.Context()) }()
	idle.expectEnd("")
	forwarding.expectEnd("")
	eventually(t, "the busy session is told", func() bool {
		left := p.clients.All()
		return len(left) == 1 && left[0].HasEnded(session.Draining)
	})
	close(p.locks.released)
	busy.expectEnd("+OK\r\n$-1\r\n")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// closingListener accepts one client while it is being closed.
type closingListener struct {
	net.Listener
	begin  func() // is called when it waits for a client
	close  func() // closes closed
	closed chan struct{}
	last   chan net.Conn
}

func (l *closingListener) Accept() (net.Conn, error) {
	l.begin()
	<-l.closed
	select {
	case conn := <-l.last:
		return conn, nil
	default:
		return nil, net.ErrClosed
	}
}

func (l *closingListener) Close() error {
	l.close()
	return nil
}

// A client that was accepted in the moment in which the proxy stops accepting is served.
func TestTheLastClientIsServed(t *testing.T) {
	p := startTestProxy(t, nil)
	near, far := net.Pipe()
	begun, closed := make(chan struct{}), make(chan struct{})
	l := &closingListener{
		begin: sync.OnceFunc(func() { close(begun) }), close: sync.OnceFunc(func() { close(closed) }),
		closed: closed, last: make(chan net.Conn, 1),
	}
	l.last <- far
	served := make(chan error, 1)
	go func() { served <- p.clients.Serve(l) }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		p.clients.StopAccepting()
		p.clients.AwaitLeaving(ctx)
		close(stopped)
	}()
	defer func() { cancel(); <-stopped }()
	_ = near.SetDeadline(time.Now().Add(patience))
	if _, err := near.Write([]byte("PING\r\n")); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, len("+PONG\r\n"))
	if _, err := io.ReadFull(near, reply); err != nil || string(reply) != "+PONG\r\n" {
		t.Errorf("%q, %v", reply, err)
	}
	near.Close()
	<-stopped // because the client has left, not because ctx has ended
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestDrainIsCutShort(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	busy, blocked := p.dial(t), p.dial(t)
	busy.send("SET lock:slow 1 NX\r\n")
	<-p.locks.entered
	blocked.send("BLPOP q 0\r\n")
	eventually(t, "the client blocks", blockedClients(t, redis, "1"))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.clients.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("shutdown: %v", err)
	}
	if n := p.sessionCount(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	eventually(t, "the upstream is left", func() bool { return redis.Settle(t) == 1 })
}

func TestMemoryOfUnfinishedCommandsIsBounded(t *testing.T) {
	p := startTestProxy(t, nil, func(c *testConfig) { c.Limits.Memory = 1 << 20 })
	client := p.dial(t)
	client.ask("PING\r\n", "+PONG\r\n")
	_, _ = client.Write([]byte("*2\r\n$4\r\nECHO\r\n$4000000\r\n" + strings.Repeat("x", 4_000_000)))
	_ = client.SetReadDeadline(time.Now().Add(patience))
	if got := client.values(1); got != "" && got != string(wire.ErrMemory) { // a reset may overtake the text
		t.Errorf("got %q", got)
	}
	eventually(t, "the memory is free again", func() bool { return p.env.Budget.InUse() == 0 })
	other := p.dial(t)
	other.ask("*2\r\n$4\r\nECHO\r\n"+bulk(strings.Repeat("x", 200_000)), bulk(strings.Repeat("x", 200_000)))
}
