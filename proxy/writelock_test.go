package proxy

import (
	"bytes"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/proxy/proxytest"
)

// A brokenConn panics at the write for which it is armed.
type brokenConn struct {
	net.Conn
	onWrite atomic.Pointer[func()]
}

func (c *brokenConn) Write(p []byte) (int, error) {
	if do := c.onWrite.Swap(nil); do != nil {
		(*do)()
	}
	return c.Conn.Write(p)
}

// connectThrough gives the server a client whose connection the test can break.
func (p *testProxy) connectThrough(t *testing.T) (*testClient, *brokenConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	client := dialTest(t, "tcp", listener.Addr().String())
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn := &brokenConn{Conn: accepted}
	p.server.Welcome(conn)
	return client, conn
}

// someoneLocks tells whether a goroutine waits for the writing side of a client.
func someoneLocks() bool {
	stacks := make([]byte, 1<<20)
	return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("conn.(*Writer).Lock("))
}

// A panic while the session writes gives the writing side back, for who waits
// for it, and so the session can end.
func TestAPanicWhileWritingEndsTheSession(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis)
	client, conn := p.connectThrough(t)
	client.ask("HELLO 3 SETNAME x\r\nSUBSCRIBE news\r\n", helloText(3)+confirmed(">", "subscribe", "news", 1))
	publisher := p.dial(t)
	publisher.ask("PING\r\n", "+PONG\r\n") // it is a session now
	fails := func() {
		publisher.ask("PUBLISH news hello\r\n", ":1\r\n")
		for end := time.Now().Add(patience); !someoneLocks() && time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
		panic("made for the test")
	}
	conn.onWrite.Store(&fails)
	client.send("SET lock:a v NX\r\n")
	eventually(t, "the session ends", func() bool { return p.sessionCount() == 1 })
}
