package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// A register is the resource that a lock protects. It has no guard but a fence:
// it numbers its visitors, and takes no write from one whose number is not the
// highest that it has given. A holder that writes within its lease must never
// meet the fence; one that has overstayed is kept out by nothing else.
type register struct {
	mu       sync.Mutex
	key      string
	fence    int
	holders  []*holder
	writes   int
	fenced   int
	breaches []violation
}

// A violation is something that a lock promises never to happen.
type violation struct {
	at   time.Time
	what string
}

// A holder is a client between its grant and its release. Only the register
// changes it.
type holder struct {
	client int
	token  string
	from   time.Time
	until  time.Time
	fence  int
}

// enter lets a client in that acts on the lock until then.
func (r *register) enter(client int, token string, until time.Time) *holder {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fence++
	h := &holder{client: client, token: token, from: time.Now(), until: until, fence: r.fence}
	for _, other := range r.holders {
		if other.until.After(h.from) {
			r.breach(h.from, "two holders of %s: client %d as %s since %s ago with %s left, and client %d as %s",
				r.key, other.client, other.token, h.from.Sub(other.from), other.until.Sub(h.from), client, token)
		}
	}
	r.holders = append(r.holders, h)
	return h
}

func (r *register) breach(at time.Time, format string, args ...any) {
	r.breaches = append(r.breaches, violation{at, fmt.Sprintf(format, args...)})
}

func (r *register) extend(h *holder, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until.After(h.until) {
		h.until = until
	}
}

// write is what the holder does under its lock.
func (r *register) write(h *holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch {
	case h.fence == r.fence:
		r.writes++
	case now.Before(h.until):
		r.breach(now, "write under %s by client %d as %s with %s of its lease left, after another client had come in",
			r.key, h.client, h.token, h.until.Sub(now))
	default:
		r.fenced++
	}
}

// leave notes that the client does not act on the lock any more.
func (r *register) leave(h *holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, other := range r.holders {
		if other == h {
			r.holders = append(r.holders[:i], r.holders[i+1:]...)
			return
		}
	}
}

// inUse tells whether a client that came in after that moment has stayed for
// longer than most do, and can count on the lock for so much longer.
func (r *register) inUse(after time.Time, left time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holders {
		if h.from.After(after) && time.Since(h.from) > shortStay && time.Until(h.until) > left {
			return true
		}
	}
	return false
}

// TestHolderThatPausesIsFencedOff: a client that pauses for longer than its
// lease and then writes as if it still held the lock is beyond what any lock
// service can stop. The resource can, by a fence.
func TestHolderThatPausesIsFencedOff(t *testing.T) {
	c := startCluster(t, proxyOptions{})
	first, second := c.proxy.client(t), c.addProxy(t, proxyOptions{}).client(t)
	resource := &register{key: "lock:fenced"}
	const lease = 500 * time.Millisecond

	asked := time.Now()
	mustAcquire(t, first, "lock:fenced", "token-of-the-sleeper", lease)
	sleeper := resource.enter(1, "token-of-the-sleeper", asked.Add(lease-lostToDrift(lease)))
	mustAcquire(t, second, "lock:fenced", "token-of-the-next-one", longTTL) // when the lease has ended
	next := resource.enter(2, "token-of-the-next-one", time.Now().Add(longTTL/2))
	resource.write(next)
	resource.write(sleeper)
	if resource.writes != 1 || resource.fenced != 1 || len(resource.breaches) > 0 {
		t.Errorf("%d writes, %d fenced off, breaches %v; want one, one and none", resource.writes, resource.fenced, resource.breaches)
	}
	mustRelease(t, second, "lock:fenced", "token-of-the-next-one")
}
