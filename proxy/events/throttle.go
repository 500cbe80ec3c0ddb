package events

import (
	"sync"
	"time"
)

// throttleEvery is the least time between two log lines about one kind of event. Clients
// can cause these events at will and must not fill the log.
const throttleEvery = time.Second

// A Throttle counts events that happen too often for a log line each. The zero value is
// ready to use. Any number of goroutines may use it.
type Throttle struct {
	mu     sync.Mutex
	logged time.Time
	since  int // events since then
}

// Due counts one event and tells whether to log now. If so, count is the number of events
// since the last line, this one included.
func (t *Throttle) Due(now time.Time) (count int, due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since++
	if now.Sub(t.logged) < throttleEvery {
		return 0, false
	}
	count, t.since, t.logged = t.since, 0, now
	return count, true
}
