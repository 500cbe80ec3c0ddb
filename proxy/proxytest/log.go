package proxytest

import (
	"bytes"
	"sync"
)

// Log collects the output of a logger. Any goroutine may write to it and read it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends p. It never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
