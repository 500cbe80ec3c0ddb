package main

import (
	"io"
	"sync"
	"time"
)

const (
	mostUnread = 1 << 20 // bytes of the log that may wait to be written
	// closePatience bounds the wait for a writer that takes nothing.
	closePatience = time.Second
)

// A logQueue is a writer for log lines that keeps a slow reader of the log from holding up the proxy. If
// standard error is a pipe whose reader has stopped, a write to it waits without end, and on the event
// loop all clients would wait with it. A logQueue takes what is written and never waits. Its goroutine
// writes it on, in order. If too much waits, lines are dropped and counted. Any goroutine may write to it.
type logQueue struct {
	to      io.Writer
	dropped func(lines int)
	done    chan struct{}

	mu      sync.Mutex
	news    sync.Cond // something has changed below
	waiting []byte
	lost    int // lines dropped since the last write
	closed  bool
}

// newLogQueue makes a queue before a writer and starts its goroutine, which ends with Close. dropped is
// called there when lines were dropped and others can be written again. It may write to the
// queue.
func newLogQueue(to io.Writer, dropped func(lines int)) *logQueue {
	q := &logQueue{to: to, dropped: dropped, done: make(chan struct{})}
	q.news.L = &q.mu
	go q.run()
	return q
}

// Write takes a copy of one line. It never waits and always succeeds.
func (q *logQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(line) > mostUnread {
		q.lost++
	} else {
		q.waiting = append(q.waiting, line...)
	}
	q.news.Signal()
	return len(line), nil
}

// Close writes what waits, and takes nothing more. It gives up after a second if the writer takes
// nothing.
func (q *logQueue) Close() {
	q.mu.Lock()
	q.closed = true
	q.news.Signal()
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(closePatience):
	}
}

func (q *logQueue) run() {
	defer close(q.done)
	var lines []byte
	for {
		if cap(lines) > mostUnread/16 {
			lines = nil
		}
		q.mu.Lock()
		for len(q.waiting) == 0 && q.lost == 0 && !q.closed {
			q.news.Wait()
		}
		lost, closed := q.lost, q.closed
		lines, q.waiting, q.lost = q.waiting, lines[:0], 0
		q.mu.Unlock()
		if len(lines) > 0 {
			_, _ = q.to.Write(lines) // there is no place to report the error
		}
		switch {
		case closed:
			return
		case lost > 0:
			q.dropped(lost)
		}
	}
}
