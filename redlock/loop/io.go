package loop

import (
	"errors"
	"io"
	"net"
)

// writeSize is the most bytes that are written to a socket in a round.
const writeSize = 256 << 10

// A read of muchRead bytes is much. Most commands are shorter, even the scripts of lock libraries.
const muchRead = 512

// errAgain means that the kernel has nothing to read, or no room for what is written.
var errAgain = errors.New("not ready")

// event notes what the kernel says about a descriptor. It may speak of a socket that had the
// same number before. Then the next read finds nothing, and no harm is done.
func (l *Loop) event(fd int, readable, writable, ending bool) {
	if fd >= len(l.connections) || l.connections[fd] == nil {
		return
	}
	s := l.connections[fd]
	s.readable = s.readable || readable || ending
	s.toTheEnd = s.toTheEnd || ending
	l.makeReady(s)
	if s.blocked && (writable || ending) {
		s.mu.Lock()
		s.unlockAndQueue()
	}
}

// makeReady lists a socket that there may be something to read from.
func (l *Loop) makeReady(s *Socket) {
	if s.readable && !s.inReady && !s.eof && !s.over && !s.paused.Load() {
		s.inReady = true
		switch {
		case s.first.Load():
			l.first = append(l.first, s)
		case s.toTheEnd:
			l.last = append(l.last, s)
		case s.bringsMuch():
			l.later = append(l.later, s)
		default:
			l.ready = append(l.ready, s)
		}
	}
}

// read reads once from a socket.
func (l *Loop) read(s *Socket) {
	s.inReady = false
	if s.over || s.eof || s.paused.Load() {
		return
	}
	n, err := readDescriptor(s.fd, l.buf[:])
	switch {
	case n > 0:
		s.broughtMuch = n >= muchRead
		// The kernel tells anew when more comes after a read that emptied it.
		s.readable = n == len(l.buf) || s.toTheEnd || s.untold
		l.tell(s, func() { s.receiver.Received(l.buf[:n]) })
	case errors.Is(err, errAgain):
		s.readable, s.untold = false, false
	case err != nil:
		l.finish(s, err)
	default:
		s.eof = true
		l.tell(s, func() { s.receiver.Ended(io.EOF) })
	}
	l.makeReady(s)
}

// tell calls the receiver. A panic ends the connection, and so does a runtime.Goexit.
func (l *Loop) tell(s *Socket, f func()) {
	returned := false
	defer func() {
		l.watch.ran(s)
		if !returned && !s.over {
			l.finish(s, errPanicked)
		}
	}()
	defer l.contain("a receiver")
	f()
	returned = true
}

// errPanicked is given to Ended if the receiver did not return.
var errPanicked = errors.New("the receiver panicked")

// attend does what was asked of a socket.
func (l *Loop) attend(s *Socket) {
	s.mu.Lock()
	s.queued = false
	closed, shutWrite := s.closed, s.shutWrite
	s.mu.Unlock()
	if s.over {
		return
	}
	if !s.known {
		l.register(s)
	}
	l.makeReady(s)
	all, err := l.send(s)
	if err == nil && all && s.mustTellDrained() {
		l.tell(s, s.receiver.Drained)
	}
	switch {
	case s.over:
	case err != nil:
		l.finish(s, err)
	case closed && (all || s.blocked):
		l.finish(s, net.ErrClosed)
	case all && shutWrite && !s.shut:
		s.shut = true
		shutDescriptor(s.fd)
	}
}

// mustTellDrained tells whether Drained is to be called now.
func (s *Socket) mustTellDrained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	must := s.drain && s.waiting == 0
	s.drain = s.drain && !must
	return must
}

// register notes a new socket. What the kernel has told of it before is lost, also that the other
// side sends no more. So there may be something to read, and after that an end.
func (l *Loop) register(s *Socket) {
	s.known, s.readable, s.untold = true, true, true
	for len(l.connections) <= s.fd {
		l.connections = append(l.connections, nil)
	}
	l.connections[s.fd] = s
}

// send writes what waits. all tells whether nothing waits any more.
func (l *Loop) send(s *Socket) (all bool, err error) {
	for done := 0; ; {
		if s.sending == nil {
			s.mu.Lock()
			s.sending, s.out = s.out, nil
			s.mu.Unlock()
			if s.sending == nil {
				return true, l.setBlocked(s, false)
			}
		}
		if done >= writeSize { // the others come first
			s.mu.Lock()
			s.unlockAndQueue()
			return false, nil
		}
		rest := s.sending.bytes[s.sent:]
		n, err := writeDescriptor(s.fd, rest[:min(len(rest), writeSize)])
		if errors.Is(err, errAgain) {
			return false, l.setBlocked(s, true)
		}
		if err != nil {
			return false, err
		}
		done += n
		l.account(s, n)
	}
}

// account notes that n more bytes are in the kernel.
func (l *Loop) account(s *Socket, n int) {
	if s.sent += n; s.sent == len(s.sending.bytes) {
		l.putBuffer(s.sending)
		s.sending, s.sent = nil, 0
	}
	s.mu.Lock()
	s.waiting -= n
	s.mu.Unlock()
}

// setBlocked has the kernel tell when it takes more, or not.
func (l *Loop) setBlocked(s *Socket, blocked bool) error {
	if s.blocked == blocked {
		return nil
	}
	s.blocked = blocked
	return l.poll.modify(s.fd, blocked)
}

// finish closes the descriptor and calls the receiver for the last time.
func (l *Loop) finish(s *Socket, err error) {
	s.over = true
	if l.connections[s.fd] == s {
		l.connections[s.fd] = nil
	}
	closeDescriptor(s.fd)
	l.putBuffer(s.sending)
	s.sending = nil
	s.mu.Lock()
	s.closed = true
	s.waiting = 0
	out := s.out
	s.out = nil
	s.mu.Unlock()
	l.putBuffer(out)
	l.tell(s, func() { s.receiver.Ended(err) })
}
