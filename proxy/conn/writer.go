package conn

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

// Unlock lets another goroutine write.
func (w *Writer) Unlock() { <-w.lock }

// Write writes to the socket. The caller holds the lock.
func (w *Writer) Write(p []byte) (int, error) { return w.to.Write(p) }
