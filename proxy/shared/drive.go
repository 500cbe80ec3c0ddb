package shared

import (
	"errors"
	"io"
	"runtime"

	"redlock-proxy/redlock/loop"
)

// readAtOnce is the size of the reader's buffer.
const readAtOnce = 64 << 10

// attach has a loop read and write the connection, if it can. ended is called when the connection
// has ended.
func (c *connection) attach(l *loop.Loop, ended func()) bool {
	c.loop = l
	if !c.sock.Attach(l, nil, looped{c, ended}) {
		c.loop = nil
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

// Without a loop, a connection has two goroutines.

// read is the reader, until the connection ends.
func (c *connection) read() {
	defer c.end()
	buf := make([]byte, readAtOnce)
	for {
		n, err := c.sock.Read(buf)
		if !c.take(buf[:n]) || err != nil {
			return
		}
		c.awaitMembers()
	}
}

// awaitMembers returns when no member is full.
func (c *connection) awaitMembers() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.full) > 0 {
		c.changed.Wait()
	}
}

// write is the writer. It sends all that is there in one write, until the connection ends.
func (c *connection) write() {
	defer c.catch()
	for {
		select {
		case <-c.unsent:
		case <-c.done:
			return
		}
		runtime.Gosched() // the commands of other sessions that are ready go in the same write
		if _, err := c.sock.Write(c.unsentCommands()); err != nil {
			c.sock.Abandon()
		}
	}
}
