package loop

import (
	"errors"
	"io"
	"net"
)

// Below returns what to give to tls.Server or tls.Client as the connection below TLS. A loop that adopts the TLS
// connection after its handshake reads and writes it itself, where the kernel can poll it. Without Below, and
// on other systems, the connection is pumped.
func Below(c net.Conn) net.Conn { return &below{Conn: c} }

// A below is the connection below TLS. When a loop has adopted it, no call waits. Read returns errAgain when nothing
// is there, which TLS takes for a timeout: it keeps the part of a record that has come. Write keeps what TLS
// sends until flush.
type below struct {
	net.Conn
	of    *descriptor // nil: no loop has adopted it
	empty bool        // the last read took all that was there
	out   *buffer     // nil: nothing waits
	sent  int         // bytes of out that the kernel has taken
}

func (b *below) Read(p []byte) (int, error) {
	switch {
	case b.of == nil:
		return b.Conn.Read(p)
	case b.empty:
		return 0, errAgain
	}
	n, err := b.of.read(p)
	b.empty = n < len(p)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (b *below) Write(p []byte) (int, error) {
	if b.of == nil {
		return b.Conn.Write(p)
	}
	if b.out == nil {
		b.out = b.of.socket.loop.takeBuffer()
	}
	b.out.bytes = append(b.out.bytes, p...)
	return len(p), nil
}

// flush sends what waits. Its error is errAgain if the kernel does not take all.
func (b *below) flush() error {
	for b.out != nil {
		n, err := b.of.write(b.out.bytes[b.sent:])
		if err != nil {
			return err
		}
		if b.sent += n; b.sent == len(b.out.bytes) {
			b.drop()
		}
	}
	return nil
}

func (b *below) drop() {
	b.of.socket.loop.putBuffer(b.out)
	b.out, b.sent = nil, 0
}

// An encrypted is a TLS connection whose connection below the kernel polls. It is used like a descriptor.
type encrypted struct {
	*descriptor
	conn  wrapper
	below *below
	taken int // bytes of the last write, which are encrypted and not all sent
}

// newEncrypted returns nil if that is no such connection.
func (l *Loop) newEncrypted(c net.Conn, s *Socket) *encrypted {
	over, isTLS := c.(wrapper)
	if !isTLS {
		return nil
	}
	under, ok := over.NetConn().(*below)
	if !ok {
		return nil
	}
	if under.of = l.newDescriptor(under.Conn, s); under.of == nil {
		return nil
	}
	return &encrypted{descriptor: under.of, conn: over, below: under}
}

func (e *encrypted) read(p []byte) (n int, err error) {
	e.below.empty = false
	for n < len(p) && err == nil {
		var more int
		more, err = e.conn.Read(p[n:]) // at most one record
		n += more
	}
	_ = e.below.flush() // TLS may have answered; what the kernel does not take follows with the next write
	switch {
	case errors.Is(err, errAgain) && n > 0:
		return n, nil
	case n > 0:
		e.socket.untold = e.socket.untold || err != nil // it comes again
		return n, nil
	case err == io.EOF:
		return 0, nil
	}
	return 0, err
}

func (e *encrypted) write(p []byte) (int, error) {
	if e.taken == 0 {
		n, err := e.conn.Write(p[:min(len(p), mostWritten)])
		if err != nil {
			return 0, err
		}
		e.taken = n
	}
	if err := e.below.flush(); err != nil {
		return 0, err
	}
	n := e.taken
	e.taken = 0
	return n, nil
}

// shutWrite sends TLS's closing message, if the kernel takes it.
func (e *encrypted) shutWrite() {
	_ = e.conn.CloseWrite()
	_ = e.below.flush()
}

func (e *encrypted) close(abrupt bool) (unused bool) {
	if !abrupt {
		e.shutWrite()
	}
	if e.below.out != nil {
		e.below.drop()
	}
	return e.descriptor.close(abrupt)
}
