package conn

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/loop"
)

// mostWaiting is the number of bytes that may wait to be sent. While there are more, writers wait.
const mostWaiting = 64 << 10

// A Reader gets what the loop reads from a socket. The loop calls it, so it must not block.
type Reader interface {
	// Received gets the next bytes, which are valid during the call only.
	Received(p []byte)
	// Ended is called with io.EOF when the other side sends no more, and with another error
	// when the connection is over.
	Ended(err error)
}

// A Socket is a connection that a loop reads and writes, for a task. Any goroutine may call its
// methods, unless they say otherwise.
type Socket struct {
	on    *loop.Socket
	loop  *loop.Loop
	task  *loop.Task // is unparked by what happens to the socket; may be nil
	to    Reader
	clock *Clock

	active  atomic.Int64 // when bytes last came
	written atomic.Int64 // bytes given to the loop
	sent    atomic.Int64 // those that were sent when the sweep last looked
	stalled atomic.Int64 // when it first saw that no more were sent while some waited; 0: they were, or none did
	taken   atomic.Int64 // bytes that were sent when Quiet was called last, and 1
	moved   atomic.Int64 // when it last saw that more were, or that nothing may be read
	held    atomic.Bool  // Pause was called last

	mu       sync.Mutex
	over     error    // why the connection is over
	whenRoom []func() // are called when there is room to write
}

// Adopt has a loop read and write a connection from now on, after its TLS handshake if it came over TLS.
// The Reader gets its bytes after Resume. The task is unparked by Unpark, by the connection's end and when
// there is room to write. It fails only if the loop has ended. Then the connection is still the caller's.
func Adopt(c net.Conn, l *loop.Loop, task *loop.Task, clock *Clock, to Reader) (*Socket, error) {
	s := &Socket{loop: l, task: task, clock: clock, to: to}
	s.active.Store(clock.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	on, err := l.Adopt(c, (*receiver)(s))
	if err != nil {
		return nil, err
	}
	s.on = on
	return s, nil
}

// ReadFirst has the loop read the socket before all others (loop.Socket.ReadFirst).
func (s *Socket) ReadFirst() { s.on.ReadFirst() }

// ReadLike has the loop read the socket in the turn of a client's socket (loop.Socket.ReadLike).
func (s *Socket) ReadLike(client *Writer) { s.on.ReadLike(client.to.on) }

// Pause has nothing read until Resume.
func (s *Socket) Pause() {
	s.held.Store(true)
	s.on.Pause()
}

// Resume begins to read, or goes on with it.
func (s *Socket) Resume() {
	s.held.Store(false)
	s.on.Resume()
}

// Unpark has the task look at what has happened. It does nothing for nil.
func (s *Socket) Unpark() {
	if s != nil {
		s.task.Unpark()
	}
}

// CloseWrite tells the other side that nothing more will come, after what waits was sent.
func (s *Socket) CloseWrite() { s.on.CloseWrite() }

// Close closes the connection. It waits for nothing: what waits is sent as far as the loop can.
func (s *Socket) Close() { s.on.Close() }

// Abandon closes the connection as it is. It does nothing for nil.
func (s *Socket) Abandon() {
	if s != nil {
		s.on.Abandon()
	}
}

// A receiver is a socket as its loop sees it.
type receiver Socket

func (r *receiver) Received(p []byte) {
	if now := r.clock.Now(); r.active.Load() != now { // most reads need no store
		r.active.Store(now)
	}
	r.to.Received(p)
}

func (r *receiver) Ended(err error) {
	if !errors.Is(err, io.EOF) {
		r.mu.Lock()
		r.over = err
		r.mu.Unlock()
		r.Drained()
	}
	r.to.Ended(err)
	r.task.Unpark()
}

func (r *receiver) Drained() { (*Socket)(r).tellRoom() }

// tellRoom wakes everything that waits for room to write.
func (s *Socket) tellRoom() {
	s.mu.Lock()
	waiting := s.whenRoom
	s.whenRoom = nil
	s.mu.Unlock()
	for _, then := range waiting {
		then()
	}
	s.task.Unpark()
}

// Append sends p at the end of the loop's round. It never waits.
func (s *Socket) Append(p []byte) error {
	if err := s.failed(); err != nil {
		return err
	}
	s.written.Add(int64(len(p)))
	s.on.Write(p)
	return nil
}

// failed is the error that ended the connection, or nil.
func (s *Socket) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// Send sends p, without a copy or in pieces, so that no second p takes memory. It returns when that is done or
// the connection is over. Only the task calls it.
func (s *Socket) Send(p []byte) {
	for len(p) > 0 && s.failed() == nil {
		s.AwaitSent()
		piece := p
		if !s.on.Lend(p) {
			piece = p[:min(len(p), mostWaiting)]
			s.on.Write(piece)
		}
		s.written.Add(int64(len(piece)))
		p = p[len(piece):]
	}
	s.AwaitSent()
}

// AwaitSent returns when nothing waits to be sent, or the connection is over. Only the task calls it.
func (s *Socket) AwaitSent() {
	for s.on.Waiting() > 0 && s.failed() == nil && s.on.Drain() > 0 {
		s.task.Park()
	}
}

// Waiting is the number of bytes that wait to be sent.
func (s *Socket) Waiting() int { return s.on.Waiting() }

// IsFull tells whether much waits to be sent.
func (s *Socket) IsFull() bool { return s.on.Waiting() > mostWaiting }

// WhenRoom has then called when there is room to write, or when the connection is over. If that is so
// already, it returns false and calls nothing.
func (s *Socket) WhenRoom(then func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || s.on.Drain() <= mostWaiting {
		return false
	}
	s.whenRoom = append(s.whenRoom, then)
	return true
}

// Silent is the time since bytes last came.
func (s *Socket) Silent() time.Duration { return s.clock.Since(s.active.Load()) }

// Quiet is the time for which nothing has come, and the other side has taken nothing. It does not pass during a
// Pause, for which the other side is not to blame. Only the sweep calls it, and the time begins with the first call.
func (s *Socket) Quiet() time.Duration {
	sent := s.written.Load() - int64(s.on.Waiting()) + 1 // never 0, as at the first call
	if s.taken.Swap(sent) != sent || s.held.Load() {
		s.moved.Store(s.clock.Now())
	}
	return min(s.Silent(), s.clock.Since(s.moved.Load()))
}

// Stalled is the time for which bytes have waited and none was sent. Only the sweep calls it, and the time
// begins with the call that first saw this.
func (s *Socket) Stalled() time.Duration {
	waiting := s.on.Waiting()
	if sent := s.written.Load() - int64(waiting); waiting == 0 || s.sent.Swap(sent) != sent {
		s.stalled.Store(0)
	}
	if waiting == 0 {
		return 0
	}
	s.stalled.CompareAndSwap(0, max(s.clock.Now(), 1))
	return s.clock.Since(s.stalled.Load())
}

// WatchPeer makes the kernel end the connection when the peer's machine has not answered for about
// 20 s, instead of after many minutes. A process that is merely stopped is not noticed: its kernel answers.
func (s *Socket) WatchPeer() { s.on.Control(watchPeer) }
