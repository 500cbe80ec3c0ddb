package loop

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// smallRead is what a pump reads into while little comes.
	smallRead = 1 << 10
	// mostWritten is the most bytes of a write, so that a slow peer is seen to read.
	mostWritten = 64 << 10
	// lingerTime bounds how long a closed pump may still send.
	lingerTime = 2 * time.Second
)

// A pump is a source that the kernel cannot poll: TLS, a pipe, or any connection where there is no epoll.
// One goroutine reads ahead, as much as one round takes. Another one writes, while there is something to
// write. Each tells the loop by Loop.Do.
type pump struct {
	conn          net.Conn
	socket        *Socket
	came, written func()        // told to the loop; made once
	taken         chan struct{} // has room for one: the loop has taken something
	closed        chan struct{}

	mu      sync.Mutex
	unread  *buffer // is there for the loop; nil: nothing
	full    bool    // the reader waits for taken
	end     error   // not nil: nothing comes behind unread
	writing writeState
	wrote   int   // by the write that is over
	failed  error // its error

	deadline bool // only the loop uses it: lingers was called
}

type writeState uint8

const (
	idle    writeState = iota
	writing            // a goroutine uses the bytes
	over               // the loop has not heard of it
)

func newPump(c net.Conn, s *Socket) *pump {
	p := &pump{conn: c, socket: s, taken: make(chan struct{}, 1), closed: make(chan struct{})}
	p.came = func() { s.loop.news(s, true, false, p.hasEnded()) }
	p.written = func() { s.loop.news(s, false, true, false) }
	return p
}

func (p *pump) begin() {
	p.socket.loop.pumps[p.socket] = struct{}{}
	p.socket.loop.helpers.Go(p.readAll)
}

// readAll reads until the connection ends or is closed.
func (p *pump) readAll() {
	small, large := make([]byte, smallRead), (*[readSize]byte)(nil)
	for buf := small; ; {
		n, err := p.conn.Read(buf)
		if !p.keep(buf[:n], err) {
			return
		}
		switch {
		case n < len(buf) && large != nil:
			largeBuffers.Put(large)
			buf, large = small, nil
		case n == len(buf) && large == nil:
			large = largeBuffers.Get().(*[readSize]byte)
			buf = large[:]
		}
	}
}

// keep keeps what was read for the loop, and waits while that is much. It returns false if nothing more
// is to be read.
func (p *pump) keep(b []byte, err error) (more bool) {
	p.mu.Lock()
	news, full := err != nil, false
	if len(b) > 0 {
		if p.unread == nil {
			news, p.unread = true, p.socket.loop.takeBuffer()
		}
		p.unread.bytes = append(p.unread.bytes, b...)
		full = len(p.unread.bytes) >= readSize
	}
	p.full, p.end = full, err
	p.mu.Unlock()
	if news && !p.socket.loop.Do(p.came) || err != nil {
		return false
	}
	if full {
		select {
		case <-p.taken:
		case <-p.closed:
			return false
		}
	}
	return true
}

var largeBuffers = sync.Pool{New: func() any { return new([readSize]byte) }}

func (p *pump) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end != nil
}

func (p *pump) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.unread != nil:
		came := p.unread.bytes
		n := copy(b, came)
		if p.unread.bytes = came[:copy(came, came[n:])]; n == len(came) {
			p.socket.loop.putBuffer(p.unread)
			p.unread = nil
		}
		if p.full {
			p.full = false
			p.taken <- struct{}{}
		}
		return n, nil
	case errors.Is(p.end, io.EOF):
		return 0, nil
	case p.end != nil:
		return 0, p.end
	}
	return 0, errAgain
}

// write has a goroutine write the bytes. The call after its end returns what it wrote.
func (p *pump) write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.writing {
	case idle:
		p.writing = writing
		b = b[:min(len(b), mostWritten)]
		p.socket.loop.helpers.Go(func() { p.writeAll(b) })
	case over:
		p.writing = idle
		return p.wrote, p.failed
	}
	return 0, errAgain
}

func (p *pump) writeAll(b []byte) {
	n, err := p.conn.Write(b)
	p.mu.Lock()
	p.writing, p.wrote, p.failed = over, n, err
	p.mu.Unlock()
	p.socket.loop.Do(p.written)
}

func (p *pump) wait(bool) error { return nil } // it always tells

func (p *pump) lingers() bool {
	if !p.deadline {
		p.deadline = true
		_ = p.conn.SetWriteDeadline(time.Now().Add(lingerTime))
	}
	return true
}

// shutWrite closes the connection if it cannot be closed by half.
func (p *pump) shutWrite() {
	p.socket.loop.helpers.Go(func() {
		if half, ok := p.conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
			return
		}
		_ = p.conn.Close()
	})
}

// close closes the connection, TLS on a goroutine, because its closing message may have to wait.
func (p *pump) close(abrupt bool) (unused bool) {
	delete(p.socket.loop.pumps, p.socket)
	close(p.closed)
	if _, encrypted := p.conn.(wrapper); !encrypted || abrupt {
		_ = transport(p.conn).Close()
	} else {
		p.socket.loop.helpers.Go(func() {
			defer time.AfterFunc(lingerTime, func() { _ = transport(p.conn).Close() }).Stop()
			_ = p.conn.Close()
		})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writing != writing
}

func (p *pump) control(f func(fd uintptr)) {
	owner, ok := transport(p.conn).(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := owner.SyscallConn(); err == nil {
		_ = raw.Control(f)
	}
}

// A wrapper is a TLS connection.
type wrapper interface {
	net.Conn
	NetConn() net.Conn
	CloseWrite() error
}

// transport is the connection below TLS.
func transport(c net.Conn) net.Conn {
	if over, ok := c.(wrapper); ok {
		c = over.NetConn()
	}
	if under, ok := c.(*below); ok {
		return under.Conn
	}
	return c
}
