package redlock

import (
	"bytes"
	"sync"
	"testing"

	"redlock-proxy/redlock/livetest"
)

// livePatience bounds waits in real time, and a Locker's wait for a vote of a real server.
const livePatience = livetest.Patience

// A liveMaster is a real redis-server with one connection to it.
type liveMaster struct {
	t      testing.TB
	socket string
	conn   *liveConn
	server *livetest.Server
}

type liveConn struct {
	t testing.TB
	*livetest.Conn
}

func startLiveMaster(t testing.TB, args ...string) *liveMaster {
	t.Helper()
	server := livetest.Start(t, args...)
	return &liveMaster{t, server.Socket, &liveConn{t, server.Conn}, server}
}

func (m *liveMaster) kill() { m.server.Kill() }

func (m *liveMaster) dial() *liveConn { m.t.Helper(); return &liveConn{m.t, m.server.Dial()} }

func (m *liveMaster) do(args ...string) []byte { m.t.Helper(); return m.conn.Do(args...) }

func (m *liveMaster) must(args ...string) []byte { m.t.Helper(); return m.conn.Must(args...) }

func (m *liveMaster) dump(key string) []byte { m.t.Helper(); return m.conn.Dump(key) }

func (c *liveConn) do(args ...string) []byte { c.t.Helper(); return c.Do(args...) }

func (c *liveConn) ask(frames []byte, n int) [][]byte { c.t.Helper(); return c.Ask(frames, n) }

// lockedText is a log with many writers and one reader.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
