package integration

import (
	"fmt"
	"sync"
	"time"
)

// A lockCall is one thing that a client asked of a lock, when, and what it was
// told. Times count from the beginning of the campaign, on the clock that only
// goes forward.
type lockCall struct {
	client int
	proxy  int
	key    string
	token  string // of one acquisition, also where all acquisitions store the same value
	asked  lockQuestion
	ttl    time.Duration // of acquire and extend
	begin  time.Duration
	end    time.Duration
	answer lockAnswer
}

type lockQuestion string

const (
	askAcquire lockQuestion = "acquire"
	askExtend  lockQuestion = "extend"
	askRelease lockQuestion = "release"
)

func (c lockCall) String() string {
	return fmt.Sprintf("%s to %s: client %d, proxy %d: %s %s for %s as %s: %s", stamp(c.begin), stamp(c.end),
		c.client, c.proxy+1, c.asked, c.key, c.ttl, c.token, c.answer)
}

func stamp(d time.Duration) string { return fmt.Sprintf("%.6fs", d.Seconds()) }

// lostToDrift is what a careful client takes off a lease of its own accord:
// the published algorithm's clock drift.
func lostToDrift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// A lease is one acquisition that was granted, as its client can count on it.
type lease struct {
	client  int
	key     string
	token   string
	taken   lockCall
	extends []lockCall
	given   *lockCall // the first release that was asked for; nil: none
	until   time.Duration
}

// held is the time during which the client may act on the lock. Its end is
// not after its beginning if there was none.
func (l *lease) held() (from, to time.Duration) {
	from, to = l.taken.end, l.until
	if l.given != nil {
		to = min(to, l.given.begin)
	}
	return from, to
}

func (l *lease) String() string {
	from, to := l.held()
	return fmt.Sprintf("client %d as %s from %s to %s", l.client, l.token, stamp(from), stamp(to))
}

// leasesOf finds the leases in what each client noted, in the order in which
// it noted it.
func leasesOf(calls []lockCall) []*lease {
	var all []*lease
	byToken := map[string]*lease{}
	for _, c := range calls {
		l := byToken[c.token]
		switch {
		case c.asked == askAcquire && c.answer == yes:
			l = &lease{client: c.client, key: c.key, token: c.token, taken: c, until: c.begin + c.ttl - lostToDrift(c.ttl)}
			byToken[c.token] = l
			all = append(all, l)
		case l == nil: // never granted: whatever came of it, nobody relies on it
		case c.asked == askExtend:
			l.extends = append(l.extends, c)
			if c.answer == yes {
				l.until = max(l.until, c.begin+c.ttl-lostToDrift(c.ttl))
			}
		case l.given == nil:
			l.given = &c
		}
	}
	return all
}

// A register is the resource that a lock protects. It has no guard of its own
// but a version, by which it knows a writer whose knowledge is out of date: a
// holder that writes within its lease must never be one. What a client writes
// after its lease has ended is fenced off if it is out of date.
type register struct {
	mu       sync.Mutex
	key      string
	version  int
	holders  []*holder
	writes   int
	fenced   int
	breaches []string
}

// A holder is a client between its grant and its release. Only the register
// changes it.
type holder struct {
	client int
	token  string
	from   time.Time
	until  time.Time
	seen   int
}

// enter notes that a client acts on the lock until then, and what it read.
func (r *register) enter(client int, token string, until time.Time) *holder {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &holder{client: client, token: token, from: time.Now(), until: until, seen: r.version}
	for _, other := range r.holders {
		if other.until.After(h.from) {
			r.breaches = append(r.breaches, fmt.Sprintf("two holders of %s: client %d as %s since %s ago with %s left, and client %d as %s",
				r.key, other.client, other.token, h.from.Sub(other.from), other.until.Sub(h.from), client, token))
		}
	}
	r.holders = append(r.holders, h)
	return h
}

func (r *register) extend(h *holder, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until.After(h.until) {
		h.until = until
	}
}

// write is the holder's next increment.
func (r *register) write(h *holder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.version == h.seen {
		r.version++
		r.writes++
		h.seen = r.version
		return
	}
	if time.Now().Before(h.until) {
		r.breaches = append(r.breaches, fmt.Sprintf("lost update under %s: client %d as %s read version %d and found %d when it wrote",
			r.key, h.client, h.token, h.seen, r.version))
	} else {
		r.fenced++
	}
	h.seen = r.version
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

// inUse tells whether a client now holds the lock for at least so much longer.
func (r *register) inUse(left time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.holders {
		if time.Until(h.until) > left {
			return true
		}
	}
	return false
}
