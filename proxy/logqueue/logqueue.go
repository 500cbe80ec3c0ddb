// Package logqueue keeps a slow reader of the log from holding up the proxy. If standard error is
// a pipe whose reader has stopped, a write to it waits without end, and on the event loop all
// clients would wait with it.
//
// A Queue takes what is written and never waits. Its goroutine writes it on, in order. Close
// waits for that goroutine. If too much waits, lines are dropped and counted.
//
// Queue.mu is held for a few lines, never across I/O or a call to others.
package logqueue

import (
	"io"
	"sync"
	"time"
)

const (
	mostWaiting = 1 << 20 // bytes that may wait to be written
	// closePatience bounds the wait for a writer that takes nothing.
	closePatience = time.Second
)

// A Queue is a writer for log lines. Any goroutine may write to it.
type Queue struct {
	to      io.Writer
	dropped func(lines int)
	wake    chan struct{} // something waits, or Close was called
	done    chan struct{}

	mu      sync.Mutex
	waiting []byte
	lost    int // lines dropped since the last write to it
	closed  bool
}

// New makes a queue before a writer and starts its goroutine, which ends with Close. dropped is
// called there when lines were dropped and others can be written again. It may write to the
// queue.
func New(to io.Writer, dropped func(lines int)) *Queue {
	q := &Queue{to: to, dropped: dropped, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Write takes a copy of one line. It never waits and always succeeds.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	if q.closed || len(q.waiting)+len(line) > mostWaiting {
		q.lost++
	} else {
		q.waiting = append(q.waiting, line...)
	}
	q.mu.Unlock()
	q.signal()
	return len(line), nil
}

func (q *Queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Close writes what waits, and takes nothing more. It gives up after a second if the writer takes
// nothing.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	select {
	case <-q.done:
	case <-time.After(closePatience):
	}
}

func (q *Queue) run() {
	defer close(q.done)
	var spare []byte
	for range q.wake {
		for {
			lines, lost, closed := q.take(spare[:0])
			if len(lines) > 0 {
				_, _ = q.to.Write(lines) // there is no place to report the error
			}
			if spare = lines; cap(spare) > mostWaiting/16 {
				spare = nil
			}
			if lost > 0 && !closed {
				q.dropped(lost)
			}
			if closed {
				return
			}
			if len(lines) == 0 {
				break
			}
		}
	}
}

// take returns what waits, and leaves an empty buffer.
func (q *Queue) take(empty []byte) (lines []byte, lost int, closed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines, q.waiting = q.waiting, empty
	lost, q.lost = q.lost, 0
	return lines, lost, q.closed
}
