package redlock

import (
	"bytes"
	"testing"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/livetest"
	"redlock-proxy/redlock/resp"
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

// look takes an image of a key. If the server was delayed meanwhile, look takes it again,
// because the expiry would not be exact to the millisecond.
func (c *liveConn) look(key string) effect.Image {
	c.t.Helper()
	for e := (&effect.Examination{Keys: [][]byte{[]byte(key)}}); ; {
		x, err := e.Parse(c.ask(e.Append(nil, 0), e.Replies()))
		if err != nil || x.Failed {
			c.t.Fatalf("no image of %s: %v", key, err)
		}
		if x.After[0].Now-x.Before[0].Now <= 1 {
			return x.Before[0]
		}
	}
}

// sameImage compares the content of images, not the times at which they were taken.
func sameImage(a, b effect.Image) bool {
	return bytes.Equal(a.Dump, b.Dump) && a.Absent() == b.Absent() && effect.Near(a.Expiry(), b.Expiry(), resp.ExpiryTolerance)
}
