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

// news notes what is said about a socket.
func (l *Loop) news(s *Socket, readable, writable, ending bool) {
	if s.over {
		return
	}
	s.readable = s.readable || readable || ending
	s.toTheEnd = s.toTheEnd || ending
	l.makeReady(s)
	if s.blocked.Load() && (writable || ending) {
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
			l.first.add(s)
		case s.toTheEnd:
			l.last.add(s)
		case s.bringsMuch():
			l.later.add(s)
		default:
			l.ready.add(s)
		}
	}
}

// read reads once from a socket.
func (l *Loop) read(s *Socket) {
	s.inReady = false
	if s.over || s.eof || s.paused.Load() {
		return
	}
	n, err := s.source.read(l.buf[:])
	switch {
	case n > 0:
		s.came(l.watch.last)
		s.broughtMuch = n >= muchRead
		// The source tells anew when more comes after a read that emptied it.
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
			l.finish(s, ErrPanicked)
		}
	}()
	defer l.contain("a receiver")
	f()
	returned = true
}

// ErrPanicked is given to Ended if the receiver did not return from a call. The loop has logged why.
var ErrPanicked = errors.New("the receiver panicked")

// attend does what was asked of a socket.
func (l *Loop) attend(s *Socket) {
	s.mu.Lock()
	s.queued = false
	closed, abrupt, shutWrite := s.closed, s.abrupt, s.shutWrite
	s.mu.Unlock()
	if s.over {
		return
	}
	if !s.known {
		s.known = true
		s.source.begin()
	}
	if abrupt {
		l.finish(s, net.ErrClosed)
		return
	}
	l.makeReady(s)
	all, err := l.send(s)
	if err == nil && all {
		l.tellDrained(s)
	}
	switch {
	case s.over:
	case closed && (err != nil || all || s.blocked.Load() && !s.source.lingers()):
		l.finish(s, net.ErrClosed)
	case err != nil:
		l.finish(s, err)
	case closed && !s.leaving: // what waits is still sent
		s.leaving, s.eof = true, true
		l.leaving++
	case all && shutWrite && !s.shut:
		s.shut = true
		s.source.shutWrite()
	}
}

// tellDrained tells those who wait that nothing waits to be sent any more. If one of them panics, the others are told.
func (l *Loop) tellDrained(s *Socket) {
	s.mu.Lock()
	if s.waiting.Load() > 0 || len(s.drained) == 0 {
		s.mu.Unlock()
		return
	}
	drained := s.drained
	s.drained, s.told = s.told, nil
	s.mu.Unlock()
	for _, then := range drained {
		l.tell(s, then)
	}
	clear(drained)
	s.told = drained[:0]
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
		n, err := s.source.write(rest[:min(len(rest), writeSize)])
		if errors.Is(err, errAgain) {
			return false, l.setBlocked(s, true)
		}
		if err != nil {
			return false, err
		}
		done += n
		if s.blocked.Load() {
			s.took(l.watch.last)
		}
		l.account(s, n)
	}
}

// account notes that n more bytes were sent.
func (l *Loop) account(s *Socket, n int) {
	if s.sent += n; s.sent == len(s.sending.bytes) {
		l.putBuffer(s.sending)
		s.sending, s.sent = nil, 0
	}
	s.waiting.Add(-int64(n))
}

// setBlocked has the source tell when it takes more, or not.
func (l *Loop) setBlocked(s *Socket, blocked bool) error {
	if s.blocked.Load() == blocked {
		return nil
	}
	s.took(l.watch.last)
	s.blocked.Store(blocked)
	return s.source.wait(blocked)
}

// finish closes the source and calls the receiver for the last time.
func (l *Loop) finish(s *Socket, err error) {
	s.over = true
	if s.leaving {
		l.leaving--
	}
	s.mu.Lock()
	abrupt := s.abrupt
	s.mu.Unlock()
	if s.source.close(abrupt) {
		l.putBuffer(s.sending)
	}
	s.sending = nil
	s.mu.Lock()
	s.closed = true
	s.waiting.Store(0)
	out := s.out
	s.out = nil
	s.mu.Unlock()
	l.putBuffer(out)
	l.tell(s, func() { s.receiver.Ended(err) })
	l.tellDrained(s) // so who waited finds that it is over
}
