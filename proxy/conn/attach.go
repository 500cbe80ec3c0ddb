package conn

import (
	"errors"
	"io"
	"time"

	"redlock-proxy/redlock/loop"
)

// mostWaiting is the number of bytes that may wait to be sent. While there are more, writers wait.
const mostWaiting = 64 << 10

// A Reader gets what the loop reads from an attached socket. The loop calls it, so it must not
// block.
type Reader interface {
	// Received gets the next bytes, which are valid during the call only.
	Received(p []byte)
	// Ended is called with io.EOF when the other side sends no more, and with another error
	// when the connection is over.
	Ended(err error)
}

// Attach has a loop read and write the connection from now on. The Reader gets its bytes
// after Resume. task is unparked by a Wake, by the connection's end and when there is room to
// write. Attach returns false, and changes nothing, if there is no loop or it has ended.
func (s *Socket) Attach(l *loop.Loop, task *loop.Task, to Reader) bool {
	if l == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.task = task
	on, err := l.Adopt(s.Conn, receiver{s, to})
	if err != nil {
		s.task = nil
		return false
	}
	s.loop, s.room.L = l, &s.mu
	s.on.Store(on)
	return true
}

// ReadFirst has the loop read an attached socket before all others (loop.Socket.ReadFirst).
func (s *Socket) ReadFirst() { s.on.Load().ReadFirst() }

// ReadLike has the loop read an attached socket in the turn of a client's socket, which must be
// attached, too (loop.Socket.ReadLike).
func (s *Socket) ReadLike(client *Writer) { s.on.Load().ReadLike(client.to.on.Load()) }

// Attached tells whether a loop reads and writes the connection.
func (s *Socket) Attached() bool { return s.on.Load() != nil }

// Pause has an attached socket read nothing until Resume. ReadUntil's time does not pass
// meanwhile, because the other side is not to blame for the silence.
func (s *Socket) Pause() {
	s.mu.Lock()
	s.held = true
	if s.silence != nil {
		s.silence.Stop()
	}
	s.mu.Unlock()
	s.on.Load().Pause()
}

// Resume goes on with reading. ReadUntil's time begins again.
func (s *Socket) Resume() {
	s.mu.Lock()
	s.held = false
	if s.silence != nil {
		s.silence.Reset(s.patience)
	}
	s.mu.Unlock()
	s.on.Load().Resume()
}

// A receiver is an attached socket as its loop sees it.
type receiver struct {
	*Socket
	to Reader
}

func (r receiver) Received(p []byte) {
	r.touch()
	r.to.Received(p)
}

func (r receiver) Ended(err error) {
	if !errors.Is(err, io.EOF) {
		r.mu.Lock()
		r.over = err
		r.mu.Unlock()
		r.Drained()
	}
	r.to.Ended(err)
	r.task.Unpark()
}

// Drained wakes everything that waits for room to write.
func (r receiver) Drained() {
	r.mu.Lock()
	r.room.Broadcast()
	then := r.whenRoom
	r.whenRoom = nil
	r.mu.Unlock()
	if then != nil {
		then()
	}
	r.task.Unpark()
}

// Append sends p at the end of the loop's round. It never waits. The socket must be attached.
func (s *Socket) Append(p []byte) error {
	if err := s.failed(); err != nil {
		return err
	}
	s.written.Add(int64(len(p)))
	s.on.Load().Write(p)
	return nil
}

// failed is the error that ended an attached connection, or nil.
func (s *Socket) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// Send is Write by a task. On the loop it appends, and parks the task while much waits. The task
// leaves the loop before a write that could block it, or that is large.
func (s *Socket) Send(task *loop.Task, p []byte) error {
	if task.OnLoop() && s.Attached() && len(p) <= mostWaiting {
		err := s.Append(p)
		s.AwaitRoom()
		return err
	}
	task.Leave()
	_, err := s.Write(p)
	return err
}

// writeAttached is Write for goroutines. It waits while much waits to be sent.
func (s *Socket) writeAttached(p []byte) (int, error) {
	for at := 0; at < len(p); {
		n := min(len(p)-at, mostWaiting)
		if err := s.Append(p[at : at+n]); err != nil {
			return at, err
		}
		at += n
		s.await(mostWaiting)
	}
	return len(p), s.failed()
}

// await returns when no more bytes than that wait, or the connection is over. A goroutine calls
// it.
func (s *Socket) await(most int) {
	on := s.on.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.over == nil && on.Drain() > most {
		s.room.Wait()
	}
}

// AwaitRoom returns when little waits to be sent, or the connection is over. Only the task of
// the socket calls it. It does nothing for a socket that is not attached.
func (s *Socket) AwaitRoom() {
	on := s.on.Load()
	if on == nil {
		return
	}
	for s.IsFull() && s.failed() == nil && on.Drain() > mostWaiting {
		s.task.Park()
	}
}

// AwaitSent returns when nothing waits to be sent, or the connection is over. A goroutine calls
// it.
func (s *Socket) AwaitSent() {
	if s.Attached() {
		s.await(0)
	}
}

// HasSent tells whether nothing waits to be sent by a loop.
func (s *Socket) HasSent() bool {
	on := s.on.Load()
	return on == nil || on.Waiting() == 0
}

// IsFull tells whether much waits to be sent by an attached socket.
func (s *Socket) IsFull() bool { return s.on.Load().Waiting() > mostWaiting }

func (s *Socket) whenThereIsRoom(then func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil || s.on.Load().Drain() <= mostWaiting {
		return false
	}
	s.whenRoom = then
	return true
}

// stalledAttached is Stalled for an attached socket: the time for which bytes have waited and
// none was sent. Only the sweep calls it, and the time begins with the call that first saw this.
func (s *Socket) stalledAttached(on *loop.Socket) time.Duration {
	waiting := on.Waiting()
	if sent := s.written.Load() - int64(waiting); waiting == 0 || s.sent.Swap(sent) != sent {
		s.writing.Store(0)
	}
	if waiting == 0 {
		return 0
	}
	s.writing.CompareAndSwap(0, max(s.clock.Now(), 1))
	return s.clock.Since(s.writing.Load())
}

// loopOf is the loop that reads and writes the socket, or nil.
func (s *Socket) loopOf() *loop.Loop {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loop
}

// endAt is ReadUntil for an attached socket: it closes the connection then. The caller holds mu.
func (s *Socket) endAt(t time.Time) {
	s.patience = time.Until(t)
	if s.silence == nil {
		s.silence = time.AfterFunc(s.patience, func() { _ = s.Close() })
	} else {
		s.silence.Reset(s.patience)
	}
	if s.held {
		s.silence.Stop()
	}
}
