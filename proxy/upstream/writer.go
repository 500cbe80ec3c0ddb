package upstream

import (
	"sync"

	"redlock-proxy/redlock/loop"
)

// mostUnread is the number of bytes that may wait for a client. While there are more, who writes to it waits, and
// nothing is read from its connection to the server.
const mostUnread = 64 << 10

// A Writer is the writing side of a client's socket. The session, its upstream connection and its
// listener write to it. What the upstream sends comes in parts. So that no value stands inside
// another, what others write meanwhile follows when the upstream's value is over.
//
// It is locked before Append and pass. What they send, and what the caller notes before Unlock, are one step
// for others who write. The lock is held for a few lines, and nobody waits with it.
type Writer struct {
	sync.Mutex
	to     *loop.Socket
	inside bool       // the upstream's value goes on
	later  []byte     // whole values that follow it
	waits  *loop.Task // for that; nil: none does
}

// NewWriter makes the writing side of a socket. From then on only the Writer writes to
// the socket.
func NewWriter(to *loop.Socket) *Writer { return &Writer{to: to} }

// Append sends whole values. It never waits: the caller waits (AwaitDrained) after Unlock. An error means that the
// connection is over.
func (w *Writer) Append(p []byte) error {
	if w.inside {
		w.later = append(w.later, p...)
		p = nil
	}
	return w.to.Write(p)
}

// pass sends what came from the upstream. inside tells whether the last value goes on. It never waits.
func (w *Writer) pass(p []byte, inside bool) error {
	err := w.to.Write(p)
	if w.inside = inside; !inside && w.later != nil {
		err = w.to.Write(w.later)
		w.later = nil
		w.waits.Unpark()
	}
	return err
}

// Backlog is the number of bytes that the client has not taken, with those that follow the upstream's value. The
// caller holds the lock.
func (w *Writer) Backlog() int { return len(w.later) + w.to.Waiting() }

// AwaitDrained parks the session's task, which does not hold the lock, while much waits to be sent. It returns at once
// if the connection is over.
func (w *Writer) AwaitDrained(task *loop.Task) {
	for w.isHeldUp(task) {
		task.Park()
	}
	w.to.AwaitDrained(task, mostUnread)
}

// isHeldUp tells whether much has to follow the upstream's value. Then the task is unparked behind it.
func (w *Writer) isHeldUp(task *loop.Task) bool {
	w.Lock()
	defer w.Unlock()
	w.waits = task
	return len(w.later) > mostUnread && w.to.Write(nil) == nil
}
