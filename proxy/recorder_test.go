package proxy

import (
	"bytes"
	"context"
	"net"
	"sync"
)

// A recorder keeps what is sent to the upstream.
type recorder struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (r *recorder) configure(c *testConfig) {
	dial := c.DialUpstream
	c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
		conn, err := dial(ctx)
		return recordedConn{conn, r}, err
	}
}

func (r *recorder) all() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.sent.Bytes())
}

type recordedConn struct {
	net.Conn
	to *recorder
}

func (c recordedConn) Write(p []byte) (int, error) {
	c.to.mu.Lock()
	c.to.sent.Write(p)
	c.to.mu.Unlock()
	return c.Conn.Write(p)
}

// CloseWrite is what the proxy needs for RESET of a connection with an unknown number of replies.
func (c recordedConn) CloseWrite() error {
	return c.Conn.(interface{ CloseWrite() error }).CloseWrite()
}
