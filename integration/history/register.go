package history

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// A Register is the resource that a lock protects. Its only protection is a fence: it
// numbers its visitors, and refuses a write from any visitor but the last. A holder that
// writes within its lease must never meet the fence. Only the fence keeps out a holder
// that has overstayed its lease.
type Register struct {
	Mu       sync.Mutex
	Key      string
	fence    int64
	holders  []*Holder
	Writes   int
	Fenced   int
	Breaches []Violation
}

// A Violation is an event that locks promise to prevent.
type Violation struct {
	At   time.Time
	What string
}

// A Holder is a client between its grant and its release. Only the register changes it.
type Holder struct {
	client int
	token  string
	from   time.Time
	until  time.Time
	fence  int64
}

// Enter lets in a client that acts on the lock until the time until.
func (r *Register) Enter(client int, token string, until time.Time) *Holder {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.fence++
	h := &Holder{client: client, token: token, from: time.Now(), until: until, fence: r.fence}
	for _, other := range r.holders {
		if other.until.After(h.from) {
			r.breach(h.from, "two holders of %s: client %d as %s since %s ago with %s left, and client %d as %s",
				r.Key, other.client, other.token, h.from.Sub(other.from), other.until.Sub(h.from), client, token)
		}
	}
	r.holders = append(r.holders, h)
	return h
}

func (r *Register) breach(at time.Time, format string, args ...any) {
	r.Breaches = append(r.Breaches, Violation{at, fmt.Sprintf(format, args...)})
}

func (r *Register) Extend(h *Holder, until time.Time) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if until.After(h.until) {
		h.until = until
	}
}

// Write is one write of a holder under its lock.
func (r *Register) Write(h *Holder) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	now := time.Now()
	switch {
	case h.fence == r.fence:
		r.Writes++
	case now.Before(h.until):
		r.breach(now, "write under %s by client %d as %s with %s of its lease left, after another client had come in",
			r.Key, h.client, h.token, h.until.Sub(now))
	default:
		r.Fenced++
	}
}

// Leave ends the client's use of the lock.
func (r *Register) Leave(h *Holder) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for i, other := range r.holders {
		if other == h {
			r.holders = append(r.holders[:i], r.holders[i+1:]...)
			return
		}
	}
}

// Visit is a client's whole use of a lock that it holds until then: it comes in, writes, stays, writes again and leaves.
func (r *Register) Visit(client int, until time.Time) {
	h := r.Enter(client, "its token", until)
	defer r.Leave(h)
	r.Write(h)
	time.Sleep(shortVisit)
	r.Write(h)
}

// Check fails the test if two clients could rely on the lock at the same time, or came in less often than that.
func (r *Register) Check(t testing.TB, visits int) {
	t.Helper()
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for _, breach := range r.Breaches[:min(len(r.Breaches), 3)] {
		t.Errorf("%s: %s", r.Key, breach.What)
	}
	if r.Writes < 2*visits {
		t.Errorf("%s was used %d times, want %d", r.Key, r.Writes/2, visits)
	}
}

// InUse tells whether some client came in after the moment after, has stayed longer than
// ShortStay, and can rely on the lock for longer than left.
func (r *Register) InUse(after time.Time, left time.Duration) bool {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for _, h := range r.holders {
		if h.from.After(after) && time.Since(h.from) > ShortStay && time.Until(h.until) > left {
			return true
		}
	}
	return false
}

// shortVisit is enough for another client to come in if it wrongly can.
const shortVisit = time.Millisecond / 2

// ShortStay is the longest time for which most clients hold a lock.
const ShortStay = 50 * time.Millisecond
