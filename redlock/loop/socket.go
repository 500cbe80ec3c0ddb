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
}

// A Socket is a connection that its loop reads and writes. Any goroutine may call its methods.
type Socket struct {
	loop          *Loop
	receiver      Receiver
	local, remote net.Addr
	paused        atomic.Bool
	first         atomic.Bool            // it is read before others
	like          atomic.Pointer[Socket] // brings much if this one does; nil: none
	waiting       atomic.Int64           // bytes that the source has not taken, also those being sent
	progress

	mu        sync.Mutex
	queued    bool     // in the loop's queue
	out       *buffer  // was written, is not being sent; nil: nothing
	drained   []func() // are called when nothing waits
	shutWrite bool     // CloseWrite was called
	closed    bool     // Close was called, or the connection is over
	abrupt    bool     // Abandon was called

	// Only the loop uses these.
	source      source
	known       bool     // the source has begun
	readable    bool     // there may be something to read
	toTheEnd    bool     // the source told an end or an error: read until it comes
	untold      bool     // the kernel may have told news that are lost: read until nothing comes
	broughtMuch bool     // when it was read last
	inReady     bool     // in one of the loop's lists of those to read
	eof         bool     // reading is over
	shut        bool     // the other side was told that writing is over
	leaving     bool     // it is closed, and still sends what waits
	over        bool     // Ended had its last call
	told        []func() // has the memory for drained while those that it had are called
	sending     *buffer  // nil: nothing
	sent        int      // bytes of sending that the source has taken
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
	s.came(l.watch.now())
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

// Write takes a copy of p, to be sent at the end of the round. It never waits, so whoever writes much looks at
// what waits. It fails if the connection is over, or will be sent nothing more.
func (s *Socket) Write(p []byte) error {
	s.mu.Lock()
	if s.closed || s.shutWrite {
		s.mu.Unlock()
		return net.ErrClosed
	}
	if len(p) == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.out == nil {
		s.out = s.loop.takeBuffer()
	} else if s.out.lent {
		s.out = &buffer{bytes: slices.Clone(s.out.bytes)}
	}
	s.out.bytes = append(s.out.bytes, p...)
	s.waiting.Add(int64(len(p)))
	s.unlockAndQueue()
	return nil
}

// Send writes p and returns when all was sent, or the connection is over. The task parks meanwhile. p is not copied
// whole, so that something long takes no memory twice.
func (s *Socket) Send(t *Task, p []byte) {
	for len(p) > 0 {
		s.AwaitDrained(t, 0)
		piece := p
		if !s.lend(p) {
			piece = p[:min(len(p), mostWritten)]
			if s.Write(piece) != nil {
				return
			}
		}
		p = p[len(piece):]
	}
	s.AwaitDrained(t, 0)
}

// lend is Write without a copy: p must stay as it is until nothing waits, or the connection is over. It returns
// false, and does nothing, if bytes of an earlier call wait to be taken, and with a pump, which may use p longer.
func (s *Socket) lend(p []byte) (lent bool) {
	s.mu.Lock()
	if _, pumped := s.source.(*pump); pumped || s.closed || s.shutWrite || s.out != nil {
		s.mu.Unlock()
		return false
	}
	s.out = &buffer{bytes: p, lent: true}
	s.waiting.Add(int64(len(p)))
	s.unlockAndQueue()
	return true
}

// Waiting is the number of bytes that were not sent yet. A kernel that polls the connection may still
// have some more.
func (s *Socket) Waiting() int { return int(s.waiting.Load()) }

// WhenDrained has the loop call then, once, when nothing waits any more or the connection is over. If no more than
// most bytes wait now, it returns false and calls nothing. then must neither lock for long nor wait.
func (s *Socket) WhenDrained(most int, then func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Waiting() <= most {
		return false
	}
	s.drained = append(s.drained, then)
	return true
}

// AwaitDrained parks the task until nothing waits or the connection is over, if more than most bytes wait now.
func (s *Socket) AwaitDrained(t *Task, most int) {
	if s.Waiting() <= most {
		return
	}
	var over atomic.Bool
	if !s.WhenDrained(most, func() { over.Store(true); t.Unpark() }) {
		return
	}
	for !over.Load() {
		t.Park()
	}
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
		s.came(s.loop.watch.now())
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

// Do has f called on the loop like the receiver, so that a panic ends the connection, unless it is over.
func (s *Socket) Do(f func()) {
	s.loop.Do(func() {
		if !s.over {
			s.loop.tell(s, f)
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
