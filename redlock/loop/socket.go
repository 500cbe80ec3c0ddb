package loop

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// A Receiver gets what comes from a socket. The loop calls it, so its methods must be short and
// must not block.
type Receiver interface {
	// Received gets at most 32 KiB. The bytes are valid during the call only.
	Received(p []byte)
	// Ended is called with io.EOF when the other side sends no more. What waits is still sent,
	// and Write goes on. It is called with another error when the connection is over: after
	// Close, with net.ErrClosed, or because it broke. That is always the last call.
	Ended(err error)
	// Drained is called once after a Drain that returned more than 0, when nothing waits.
	Drained()
}

// A Socket is a connection that its loop reads and writes. Any goroutine may call its methods.
type Socket struct {
	loop          *Loop
	receiver      Receiver
	local, remote net.Addr
	paused        atomic.Bool
	first         atomic.Bool            // it is read before others
	like          atomic.Pointer[Socket] // brings much if this one does; nil: none

	mu        sync.Mutex
	queued    bool    // in the loop's queue
	out       *buffer // was written, is not being sent; nil: nothing
	waiting   int     // bytes that the source has not taken, also those being sent
	drain     bool    // Drained is to be called
	shutWrite bool    // CloseWrite was called
	closed    bool    // Close was called, or the connection is over
	abrupt    bool    // Abandon was called

	// Only the loop uses these.
	source      source
	known       bool    // the source has begun
	blocked     bool    // the source takes no more, and tells when it does
	readable    bool    // there may be something to read
	toTheEnd    bool    // the source told an end or an error: read until it comes
	untold      bool    // the kernel may have told news that are lost: read until nothing comes
	broughtMuch bool    // when it was read last
	inReady     bool    // in one of the loop's lists of those to read
	eof         bool    // reading is over
	shut        bool    // the other side was told that writing is over
	leaving     bool    // it is closed, and still sends what waits
	over        bool    // Ended had its last call
	sending     *buffer // nil: nothing
	sent        int     // bytes of sending that the source has taken
}

// A buffer is bytes to send. They go back to the loop's pool, unless they are lent.
type buffer struct {
	bytes []byte
	lent  bool
}

const keptBuffer = 256 << 10 // larger ones are not pooled

// Adopt takes a connection over. It begins paused, and reads nothing yet. The kernel polls it if it
// can, also below TLS (Below). Otherwise two goroutines pump its bytes. Those of a Simulated connection stay in
// memory. A TLS connection must have had its handshake. If the loop has ended, the error is net.ErrClosed, and
// the connection is still the caller's.
func (l *Loop) Adopt(c net.Conn, r Receiver) (*Socket, error) {
	s := &Socket{loop: l, receiver: r, local: c.LocalAddr(), remote: c.RemoteAddr(), queued: true}
	s.paused.Store(true)
	var polled *descriptor
	if m, inMemory := c.(Simulated); inMemory {
		s.source = &simulated{m, s}
	} else if e := l.newEncrypted(c, s); e != nil {
		s.source, polled, c = e, e.descriptor, e.below.Conn
	} else if polled = l.newDescriptor(c, s); polled != nil {
		s.source = polled
	} else {
		s.source = newPump(c, s)
	}
	if !l.enqueue(func(q *queue) { q.sockets = append(q.sockets, s) }) {
		if polled != nil {
			closeDescriptor(polled.fd)
		}
		return nil, net.ErrClosed
	}
	if polled != nil {
		_ = c.Close() // Go's poller lets go of it; the connection lives on in the descriptor
	}
	return s, nil
}

// LocalAddr and RemoteAddr are the addresses of the connection.
func (s *Socket) LocalAddr() net.Addr  { return s.local }
func (s *Socket) RemoteAddr() net.Addr { return s.remote }

// Write takes a copy of p, to be sent at the end of the round. It returns the number of bytes
// that wait, of this and earlier calls. Bytes of a connection that is over are dropped.
func (s *Socket) Write(p []byte) (waiting int) {
	s.mu.Lock()
	if s.closed || s.shutWrite || len(p) == 0 {
		defer s.mu.Unlock()
		return s.waiting
	}
	if s.out == nil {
		s.out = s.loop.takeBuffer()
	} else if s.out.lent {
		s.out = &buffer{bytes: slices.Clone(s.out.bytes)}
	}
	s.out.bytes = append(s.out.bytes, p...)
	s.waiting += len(p)
	waiting = s.waiting
	s.unlockAndQueue()
	return waiting
}

// Lend is Write without a copy: p must stay as it is until nothing waits, or Ended had its last call. It returns
// false, and does nothing, if bytes of an earlier call wait to be taken, and with a pump, which may use p longer.
func (s *Socket) Lend(p []byte) (lent bool) {
	s.mu.Lock()
	if _, pumped := s.source.(*pump); pumped || s.closed || s.shutWrite || s.out != nil {
		s.mu.Unlock()
		return false
	}
	s.out = &buffer{bytes: p, lent: true}
	s.waiting += len(p)
	s.unlockAndQueue()
	return true
}

// Waiting is the number of bytes that were not sent yet. A kernel that polls the connection may still
// have some more.
func (s *Socket) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}

// Drain asks for one call of Drained when nothing waits, and returns how many bytes wait. If that
// is 0, there is no such call, unless another goroutine has asked for it.
func (s *Socket) Drain() (waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain = s.drain || s.waiting > 0 // what another has asked for stays
	return s.waiting
}

// Pause stops reading. A call of Received that is under way goes on. If Received pauses and another
// goroutine resumes, both decide under one lock of their own, or the Pause may come last.
func (s *Socket) Pause() { s.paused.Store(true) }

// ReadFirst has the socket read before all others in each round. Its bytes do not set
// Loop.calm back. It is for the few sockets that many tasks wait for. A task that asks whether a server
// still answers then knows all answers that have come, even if this process had stood still.
func (s *Socket) ReadFirst() { s.first.Store(true) }

// ReadLike has the socket count as one that brings much while the other one does, too. It is for the
// replies to what the other one brings: they may be short, and yet cost much work.
func (s *Socket) ReadLike(other *Socket) { s.like.Store(other) }

// bringsMuch tells whether to read from the socket probably costs much work. Only the loop asks.
func (s *Socket) bringsMuch() bool {
	like := s.like.Load()
	return s.broughtMuch || like != nil && like.broughtMuch
}

// Resume begins reading, or goes on with it.
func (s *Socket) Resume() {
	if s.paused.Swap(false) {
		s.mu.Lock()
		s.unlockAndQueue()
	}
}

// CloseWrite tells the other side that nothing more will come, after what waits was sent.
func (s *Socket) CloseWrite() {
	s.mu.Lock()
	s.shutWrite = true
	s.unlockAndQueue()
}

// Close ends the connection. What waits is sent if the kernel takes it at once. A pump sends it, and
// TLS's closing message, within a few seconds, and then Ended has its last call. Close may be called again.
func (s *Socket) Close() { s.end(false) }

// Abandon is Close without sending anything more.
func (s *Socket) Abandon() { s.end(true) }

func (s *Socket) end(abrupt bool) {
	s.mu.Lock()
	s.closed, s.abrupt = true, s.abrupt || abrupt
	s.unlockAndQueue()
}

// Control has f called on the loop with the descriptor, to set options, unless the connection is
// over or has none. With TLS it is the descriptor of the connection below.
func (s *Socket) Control(f func(fd uintptr)) {
	s.loop.Do(func() {
		if !s.over {
			s.source.control(f)
		}
	})
}

// unlockAndQueue has the loop attend to the socket.
func (s *Socket) unlockAndQueue() {
	was := s.queued
	s.queued = true
	s.mu.Unlock()
	if !was {
		s.loop.enqueue(func(q *queue) { q.sockets = append(q.sockets, s) })
	}
}

func (l *Loop) takeBuffer() *buffer {
	if b, ok := l.buffers.Get().(*buffer); ok {
		return b
	}
	return new(buffer)
}

func (l *Loop) putBuffer(b *buffer) {
	if b != nil && !b.lent && cap(b.bytes) <= keptBuffer {
		b.bytes = b.bytes[:0]
		l.buffers.Put(b)
	}
}
