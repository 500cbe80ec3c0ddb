package stream

import (
	"errors"
	"net"
	"runtime"

	"redlock-proxy/redlock/resp"
)

// A link is an open connection of a stream. It calls flush when calls are queued, and
// handOut when bytes have come.
type link interface {
	// run returns when the connection has ended and nothing of it is called any more. It
	// returns why.
	run() error
	// wake has flush called soon. It does not wait. The stream's mutex is held.
	wake()
	// Close ends the connection. Any goroutine may call it at any time.
	Close() error
}

// newLink makes the link of a new connection, and owns the connection from then on.
func (s *Stream) newLink(c *Connection) link {
	if k := s.adopt(c); k != nil {
		return k
	}
	return newPair(s, c.Conn, c.Reader)
}

// wake has, with s.mu held, the queued calls sent. A connection that begins sends them in
// any case.
func (s *Stream) wake() {
	if s.link != nil {
		s.link.wake()
	}
}

// A pair is a link of two goroutines. One writes, and the other reads.
type pair struct {
	net.Conn
	stream *Stream
	in     answers
	wakes  chan struct{} // has room for one
}

func newPair(s *Stream, conn net.Conn, reader *resp.Reader) *pair {
	return &pair{Conn: conn, stream: s, in: answers{Reader: reader}, wakes: make(chan struct{}, 1)}
}

func (p *pair) wake() {
	select {
	case p.wakes <- struct{}{}:
	default:
	}
}

func (p *pair) run() error {
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		err := Contain(p.stream.log, func() error { return p.write(stop) })
		p.Close()
		ended <- err
	}()
	err := Contain(p.stream.log, p.read)
	p.Close()
	close(stop)
	return errors.Join(err, <-ended)
}

// write sends the queued calls until the connection ends or stop is closed.
func (p *pair) write(stop <-chan struct{}) error {
	var buf []byte
	for {
		if buf = p.stream.flush(buf); len(buf) == 0 {
			select {
			case <-p.wakes:
				// Let other goroutines add their calls to this batch. If there are none,
				// this costs nothing.
				runtime.Gosched()
				continue
			case <-stop:
				return nil
			}
		}
		if _, err := p.Write(buf); err != nil {
			return err
		}
		if cap(buf) > maxIdleBuffer {
			buf = nil
		}
	}
}

// read answers calls until the connection ends.
func (p *pair) read() error {
	for {
		if err := p.stream.handOut(&p.in); err != nil {
			return err
		}
		if err := p.in.Fill(); err != nil {
			return err
		}
	}
}

// maxIdleBuffer is the largest buffer that an idle writer keeps.
const maxIdleBuffer = 256 << 10
