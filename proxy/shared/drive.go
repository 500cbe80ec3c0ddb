package shared

import (
	"errors"
	"io"
)

// attach has the loop read and write the connection. ended is called when the connection has ended.
// It returns false if the loop has ended.
func (c *connection) attach(ended func()) bool {
	if !c.sock.Attach(c.pool.loop, nil, looped{c, ended}) {
		return false
	}
	c.sock.ReadFirst()
	c.sock.Resume()
	return true
}

// looped is a connection as its loop sees it. Nothing here waits.
type looped struct {
	*connection
	ended func()
}

func (l looped) Received(p []byte) {
	switch {
	case l.over.Load():
	case !l.take(p):
		l.end()
	case l.mustStop():
		l.sock.Pause()
	}
}

// Ended is called with io.EOF, and again when the loop has let go of the connection.
func (l looped) Ended(err error) {
	l.end()
	if !errors.Is(err, io.EOF) {
		l.ended()
	}
}

// flush sends all that is there in one write at the end of the round. While the server takes no
// more, it stays in out, which is bounded.
func (c *connection) flush() {
	defer c.catch()
	c.queued.Store(false)
	if !c.writer.WhenRoom(c.atEnd) {
		_ = c.writer.Append(c.unsentCommands())
	}
}

// goOn resumes reading if no member is full any more. It is called on the loop.
func (c *connection) goOn() {
	if !c.mustStop() {
		c.sock.Resume()
	}
}

// mustStop tells whether nothing may be read now.
func (c *connection) mustStop() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.full) > 0
}
