package lease

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"redlock-proxy/redlock"
)

// fakeMasters hold one lock for each key, and answer as told.
type fakeMasters struct {
	mu      sync.Mutex
	locks   map[string]fakeLock
	answer  string        // to every question; "": what they hold
	takes   time.Duration // an answer
	asked   func(key, question string)
	suspend func() // the machine of the proxy, for an hour
	began   time.Time
	now     int // questions without an answer
	most    int // of them since the script has looked
}

type fakeLock struct {
	value string
	ends  time.Time // zero: never
}

func (l fakeLock) lasts() bool { return l.ends.IsZero() || time.Now().Before(l.ends) }

// put makes them hold a lock for so long. 0: for ever.
func (m *fakeMasters) put(key, value string, ttl time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key, value, ttl)
}

func (m *fakeMasters) set(key, value string, ttl time.Duration) {
	m.locks[key] = fakeLock{value: value}
	if ttl > 0 {
		m.locks[key] = fakeLock{value, time.Now().Add(ttl)}
	}
}

// begin returns with the mutex when their answer is due.
func (m *fakeMasters) begin(key, question string) {
	m.mu.Lock()
	m.asked(key, question)
	m.now++
	m.most = max(m.most, m.now)
	takes := m.takes
	m.mu.Unlock()
	time.Sleep(takes)
	m.mu.Lock()
	m.now--
}

// decide is the answer to a question about the lock with this value.
func (m *fakeMasters) decide(key, value string) redlock.Outcome {
	switch m.answer {
	case "no-quorum":
		return redlock.Outcome{Verdict: redlock.NoQuorum}
	case "panic":
		panic("a defect")
	case "lost-after-an-hour-of-sleep":
		m.suspend()
		return redlock.Outcome{Verdict: redlock.Lost}
	}
	if l, ok := m.locks[key]; !ok || l.value != value || !l.lasts() {
		return redlock.Outcome{Verdict: redlock.Lost}
	}
	return redlock.Outcome{Verdict: redlock.Won}
}

func (m *fakeMasters) Renew(_ context.Context, r redlock.RenewRequest) redlock.Outcome {
	key, began := string(r.Key), time.Now()
	kind := ""
	if r.Hash {
		kind = " as a hash"
	}
	m.begin(key, fmt.Sprintf("renew KEY%s for %s", kind, short(r.TTL)))
	defer m.mu.Unlock()
	o := m.decide(key, string(r.Holder))
	if o.Since = began; o.Verdict == redlock.Won {
		m.set(key, string(r.Holder), r.TTL)
	}
	return o
}

func (m *fakeMasters) Release(_ context.Context, r redlock.ReleaseRequest) redlock.Outcome {
	key, ends := string(r.Key), "never ends"
	if !r.Until.IsZero() {
		ends = "ends by " + short(r.Until.Sub(m.began))
	}
	m.begin(key, "release KEY, which "+ends)
	defer m.mu.Unlock()
	o := m.decide(key, string(r.Value))
	if o.Verdict == redlock.Won {
		delete(m.locks, key)
	}
	return o
}

// short writes a duration without zeros at its end.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
