package proxy

import (
	"sync"
	"time"
)

// throttleEvery is how often one thing that clients can bring about at will is
// logged at most: they must not fill the log.
const throttleEvery = time.Second

// A throttle counts what is not logged each time it happens.
type throttle struct {
	mu     sync.Mutex
	logged time.Time
	since  int // how often it has happened since then
}

// due tells whether to log now, and how often it has happened since the last
// line, this time included.
func (t *throttle) due(now time.Time) (count int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since++
	if now.Sub(t.logged) < throttleEvery {
		return 0, false
	}
	count, t.since, t.logged = t.since, 0, now
	return count, true
}
