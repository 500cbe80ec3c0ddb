package conn

import "redlock-proxy/redlock/loop"

// A Writer is the writing side of a client's socket. The session and the copier of
// upstream replies share it. A goroutine locks it to write, and unlocks it only between
// two top-level values. The lock is held across I/O, and another goroutine may unlock
// it, so it is no mutex.
type Writer struct {
	to   *Socket
	lock chan struct{}
}

// NewWriter makes the writing side of a socket. From then on only the Writer writes to
// the socket.
func NewWriter(to *Socket) *Writer {
	return &Writer{to: to, lock: make(chan struct{}, 1)}
}

// Lock waits until no other goroutine writes.
func (w *Writer) Lock() { w.lock <- struct{}{} }

// TryLock is Lock if no other goroutine writes, and returns false otherwise.
func (w *Writer) TryLock() bool {
	select {
	case w.lock <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock lets another goroutine write.
func (w *Writer) Unlock() { <-w.lock }

// Write writes to the socket. The caller holds the lock, and may have to wait. On the loop only
// Append may be called.
func (w *Writer) Write(p []byte) (int, error) {
	err := w.to.Append(p)
	room := make(chan struct{})
	if w.to.WhenRoom(func() { close(room) }) {
		<-room
	}
	return len(p), err
}

// Append is Write to an attached socket, and never waits.
func (w *Writer) Append(p []byte) error { return w.to.Append(p) }

// Loop is the loop that writes to the socket, or nil.
func (w *Writer) Loop() *loop.Loop { return w.to.loop }

// IsFull tells whether much waits for a client that does not read. The socket must be attached.
func (w *Writer) IsFull() bool { return w.to.IsFull() }

// WhenRoom has the loop call then when there is room, or when the connection is over. If that is
// so already, it returns false and calls nothing.
func (w *Writer) WhenRoom(then func()) bool { return w.to.WhenRoom(then) }
