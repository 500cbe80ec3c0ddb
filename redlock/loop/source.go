package loop

import "net"

// errAgain means that a source has nothing to read, or takes no more for now. It is a net.Error, because TLS
// goes on after a timeout.
var errAgain error = again{}

type again struct{}

func (again) Error() string   { return "not ready" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

// A source is the connection below a socket. The kernel tells its news (descriptor, encrypted), or two goroutines
// do (pump), or a World (simulated). Only the loop calls it, and no call waits.
type source interface {
	// begin has the loop told the news from now on.
	begin()
	// read returns 0 and nil at the end, and errAgain if nothing is there. If it fills p, there may be
	// more. Otherwise the loop is told when more comes.
	read(p []byte) (int, error)
	// write returns errAgain if it takes nothing now. Then p stays as it is until the loop is told
	// that it takes more, and the next call begins with the same bytes.
	write(p []byte) (int, error)
	// wait has the loop told when write takes more, or not.
	wait(yes bool) error
	// lingers tells whether what a closed socket has to send may take a while. It is bounded: write
	// fails in the end.
	lingers() bool
	shutWrite()
	// close returns false if the bytes of the last write are still used. With abrupt it sends nothing.
	close(abrupt bool) (unused bool)
	// control calls f with the descriptor, if there is one.
	control(f func(fd uintptr))
}

// A descriptor is a source that the kernel polls.
type descriptor struct {
	socket *Socket
	fd     int
}

// newDescriptor returns nil if the kernel cannot poll the connection.
func (l *Loop) newDescriptor(c net.Conn, s *Socket) *descriptor {
	fd, err := duplicate(c)
	if err != nil {
		return nil
	}
	if err := l.poll.add(fd); err != nil {
		closeDescriptor(fd)
		return nil
	}
	return &descriptor{socket: s, fd: fd}
}

// begin notes the socket. What the kernel has told of it before is lost, also that the other side sends
// no more. So there may be something to read, and after that an end.
func (d *descriptor) begin() {
	l := d.socket.loop
	d.socket.readable, d.socket.untold = true, true
	for len(l.connections) <= d.fd {
		l.connections = append(l.connections, nil)
	}
	l.connections[d.fd] = d.socket
}

func (d *descriptor) read(p []byte) (int, error)  { return readDescriptor(d.fd, p) }
func (d *descriptor) write(p []byte) (int, error) { return writeDescriptor(d.fd, p) }
func (d *descriptor) wait(yes bool) error         { return d.socket.loop.poll.modify(d.fd, yes) }
func (d *descriptor) lingers() bool               { return false } // the kernel sends what it has taken
func (d *descriptor) shutWrite()                  { shutDescriptor(d.fd) }
func (d *descriptor) control(f func(fd uintptr))  { f(uintptr(d.fd)) }

func (d *descriptor) close(bool) (unused bool) {
	if l := d.socket.loop; d.fd < len(l.connections) && l.connections[d.fd] == d.socket {
		l.connections[d.fd] = nil
	}
	closeDescriptor(d.fd)
	return true
}

// event notes what the kernel says about a descriptor. It may speak of a socket that had the
// same number before. Then the next read finds nothing, and no harm is done.
func (l *Loop) event(fd int, readable, writable, ending bool) {
	if fd < len(l.connections) && l.connections[fd] != nil {
		l.news(l.connections[fd], readable, writable, ending)
	}
}
