package redlock

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// A liveMaster is a real redis-server with one connection to it, for tests of
// what only a real server can say.
type liveMaster struct {
	t       testing.TB
	socket  string
	conn    *liveConn
	process *os.Process
}

// kill ends the server's process.
func (m *liveMaster) kill() { m.process.Kill() }

// livePatience bounds what is waited for in real time, and how long a Locker over
// real servers waits for a vote: far beyond what a busy machine needs.
const livePatience = time.Minute

// startLiveMaster starts redis-server with further arguments and ends it with
// the test. A machine without redis-server fails the test.
func startLiveMaster(t testing.TB, args ...string) *liveMaster {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatalf("these tests need redis-server: %v", err)
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	command := exec.Command(path, append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir,
		"--save", "", "--appendonly", "no"}, args...)...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	m := &liveMaster{t: t, socket: socket, process: command.Process}
	deadline := time.Now().Add(livePatience)
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			m.conn = newLiveConn(t, conn)
			return m
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not answer: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// dial opens a further connection, closed with the test.
func (m *liveMaster) dial() *liveConn {
	m.t.Helper()
	conn, err := net.Dial("unix", m.socket)
	if err != nil {
		m.t.Fatal(err)
	}
	return newLiveConn(m.t, conn)
}

func (m *liveMaster) do(args ...string) []byte { m.t.Helper(); return m.conn.do(args...) }

// must runs a command that has to succeed.
func (m *liveMaster) must(args ...string) []byte {
	m.t.Helper()
	reply := m.do(args...)
	if resp.IsError(reply) {
		m.t.Fatalf("%.40q: %s", args, reply)
	}
	return reply
}

// dump is the key's payload, nil if it is absent.
func (m *liveMaster) dump(key string) []byte {
	m.t.Helper()
	reply := m.must("DUMP", key)
	if resp.IsNil(reply) {
		return nil
	}
	payload, ok := resp.ParseBulk(reply)
	if !ok {
		m.t.Fatalf("DUMP %s: %q", key, reply)
	}
	return payload
}

type liveConn struct {
	t    testing.TB
	conn net.Conn
	buf  []byte
}

func newLiveConn(t testing.TB, conn net.Conn) *liveConn {
	t.Cleanup(func() { conn.Close() })
	return &liveConn{t: t, conn: conn}
}

func (c *liveConn) do(args ...string) []byte {
	c.t.Helper()
	return c.ask(resp.AppendCommand(nil, args...), 1)[0]
}

// ask sends frames and reads so many replies, each in its own memory.
func (c *liveConn) ask(frames []byte, n int) [][]byte {
	c.t.Helper()
	c.conn.SetDeadline(time.Now().Add(livePatience))
	if _, err := c.conn.Write(frames); err != nil {
		c.t.Fatal(err)
	}
	var replies [][]byte
	var scanner resp.Scanner
	seen := 0
	for len(replies) < n {
		used, done, err := scanner.Scan(c.buf[seen:])
		if err != nil {
			c.t.Fatal(err)
		}
		seen += used
		if done {
			replies = append(replies, append([]byte(nil), c.buf[:seen]...))
			c.buf, seen = c.buf[seen:], 0
			continue
		}
		more := make([]byte, 64<<10)
		m, err := c.conn.Read(more)
		if err != nil {
			c.t.Fatal(err)
		}
		c.buf = append(c.buf, more[:m]...)
	}
	return replies
}
