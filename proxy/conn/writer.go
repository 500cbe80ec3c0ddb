package conn

import (
	"sync"
	"sync/atomic"

	"redlock-proxy/redlock/loop"
)

// A Writer is the writing side of a client's socket. The session, its upstream connection and its
// listener write to it. What the upstream sends comes in parts. So that no value stands inside
// another, what others write meanwhile follows when the upstream's value is over. The lock is held
// for a few lines, and nobody waits with it.
type Writer struct {
	to     *Socket
	mu     sync.Mutex
	inside bool     // the upstream's value goes on
	later  []byte   // whole values that follow it
	whens  []func() // are called then
}

// NewWriter makes the writing side of a socket. From then on only the Writer writes to
// the socket.
func NewWriter(to *Socket) *Writer { return &Writer{to: to} }

// Lock is called before Append and Pass. What they send, and what the caller notes before Unlock,
// are one step for others who write.
func (w *Writer) Lock()   { w.mu.Lock() }
func (w *Writer) Unlock() { w.mu.Unlock() }

// Append sends whole values. It never waits: the caller waits for room after Unlock.
func (w *Writer) Append(p []byte) error {
	if w.inside {
		w.later = append(w.later, p...)
		return w.to.failed()
	}
	return w.to.Append(p)
}

// Pass sends what came from the upstream. inside tells whether the last value goes on. It never waits.
func (w *Writer) Pass(p []byte, inside bool) error {
	err := w.to.Append(p)
	if w.inside = inside; inside || w.later == nil {
		return err
	}
	err = w.to.Append(w.later)
	whens := w.whens
	w.later, w.whens = nil, nil
	for _, then := range whens {
		then()
	}
	return err
}

// WhenRoom has the loop call then when little waits to be sent, or the connection is over. If that is
// so already, it returns false and calls nothing. The caller does not hold the lock, and neither lock
// nor wait in then.
func (w *Writer) WhenRoom(then func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.later) > mostWaiting {
		w.whens = append(w.whens, then)
		return true
	}
	return w.to.WhenRoom(then)
}

// AwaitRoom returns when little waits to be sent, or the connection is over.
func (w *Writer) AwaitRoom(task *loop.Task) {
	if !w.isFull() {
		return
	}
	var room atomic.Bool
	if !w.WhenRoom(func() { room.Store(true); task.Unpark() }) {
		return
	}
	for !room.Load() {
		task.Park()
	}
}

func (w *Writer) isFull() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.later) > mostWaiting || w.to.IsFull()
}

// Backlog is the number of bytes that the client has not taken, with those that follow the upstream's value. The
// caller holds the lock.
func (w *Writer) Backlog() int { return len(w.later) + w.to.Waiting() }

// Waiting, IsFull and WhenTaken are for the one who passes: the end of the value cannot wait for what
// follows it.

// Waiting is the number of bytes that the client has not taken.
func (w *Writer) Waiting() int { return w.to.Waiting() }

// IsFull tells whether those are many.
func (w *Writer) IsFull() bool { return w.to.IsFull() }

// WhenTaken is WhenRoom for those.
func (w *Writer) WhenTaken(then func()) bool { return w.to.WhenRoom(then) }

// Loop is the loop that writes to the socket.
func (w *Writer) Loop() *loop.Loop { return w.to.loop }
