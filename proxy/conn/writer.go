package conn

// A Writer is the writing side of the client's socket. The session and the
// copier of upstream replies share it: who writes has locked it, and unlocks it
// only between two top-level values. It may be held across I/O, and another
// goroutine may unlock it, which is why it is no mutex.
type Writer struct {
	to   *Socket
	lock chan struct{}
}

// NewWriter makes the writing side of a socket. Nobody else writes to that.
func NewWriter(to *Socket) *Writer {
	return &Writer{to: to, lock: make(chan struct{}, 1)}
}

// Lock waits for the writing side.
func (w *Writer) Lock() { w.lock <- struct{}{} }

// Unlock ends Lock.
func (w *Writer) Unlock() { <-w.lock }

// Write writes to the socket. The caller holds the lock.
func (w *Writer) Write(p []byte) (int, error) { return w.to.Write(p) }
