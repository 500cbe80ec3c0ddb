// Package livetest runs real redis-servers for the tests of redlock, of the proxy and of their rooms,
// where only a real server can say what is right. Nothing but tests imports it.
package livetest

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"redlock-proxy/integration/child"
	"redlock-proxy/integration/layer"
	"redlock-proxy/redlock/resp"
)

// Patience bounds what is waited for in real time: far beyond what a busy machine
// needs.
const Patience = time.Minute

// A Server is a redis-server that ends with the test, and a connection to it.
type Server struct {
	*Conn
	Socket  string // its path
	process *child.Process
}

// Start starts redis-server with further arguments. package layer says what comes
// of a machine without it.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	path := layer.Program(t, "redis-server", "redis-server")
	dir, err := os.MkdirTemp("", "redlock") // t.TempDir may be too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	process, err := child.StartRedis("redis-server", []string{path}, dir, append([]string{"--port", "0", "--unixsocket", socket}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	for deadline := time.Now().Add(Patience); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return &Server{newConn(t, conn), socket, process}
		}
		if !process.Running() || time.Now().After(deadline) {
			t.Fatalf("redis-server does not answer: %v\n%s", err, process.Log.Tail(20))
		}
	}
}

// Kill ends the server's process.
func (s *Server) Kill() { s.process.Kill() }

// Dial opens a further connection, closed with the test.
func (s *Server) Dial() *Conn {
	s.t.Helper()
	conn, err := net.Dial("unix", s.Socket)
	if err != nil {
		s.t.Fatal(err)
	}
	return newConn(s.t, conn)
}

// A Conn is one connection to a server.
type Conn struct {
	t    testing.TB
	conn net.Conn
	in   *resp.Reader
}

func newConn(t testing.TB, conn net.Conn) *Conn {
	t.Cleanup(func() { conn.Close() })
	return &Conn{t: t, conn: conn, in: resp.NewReader(conn, 64<<10, 1<<30)}
}

// Do runs a command and returns its reply.
func (c *Conn) Do(args ...string) []byte {
	c.t.Helper()
	return c.Ask(resp.AppendCommand(nil, args...), 1)[0]
}

// Must runs a command that has to succeed.
func (c *Conn) Must(args ...string) []byte {
	c.t.Helper()
	reply := c.Do(args...)
	if resp.IsError(reply) {
		c.t.Fatalf("%.40q: %s", args, reply)
	}
	return reply
}

// Dump is the key's payload, nil if it is absent.
func (c *Conn) Dump(key string) []byte {
	c.t.Helper()
	reply := c.Must("DUMP", key)
	if resp.IsNil(reply) {
		return nil
	}
	payload, ok := resp.ParseBulk(reply)
	if !ok {
		c.t.Fatalf("DUMP %s: %q", key, reply)
	}
	return payload
}

// Ask sends frames and reads so many replies, each in its own memory.
func (c *Conn) Ask(frames []byte, n int) [][]byte {
	c.t.Helper()
	c.Send(frames)
	replies, err := c.in.Next(nil, n)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range replies {
		replies[i] = bytes.Clone(replies[i])
	}
	c.in.Discard()
	return replies
}

// Send sends frames without waiting for replies.
func (c *Conn) Send(frames []byte) {
	c.t.Helper()
	c.conn.SetDeadline(time.Now().Add(Patience))
	if _, err := c.conn.Write(frames); err != nil {
		c.t.Fatal(err)
	}
}
