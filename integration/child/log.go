package child

import (
	"bytes"
	"strings"
	"sync"
)

// Log collects a child's output. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// Prepend puts the output of an earlier process in front.
func (l *Log) Prepend(earlier string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	later := l.text.String()
	l.text.Reset()
	l.text.WriteString(earlier)
	l.text.WriteString(later)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Tail returns the last n lines.
func (l *Log) Tail(n int) string {
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
