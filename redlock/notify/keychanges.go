package notify

import (
	"time"

	"redlock-proxy/redlock/quorum"
)

// When a change of a key is told. Nothing in here waits or reads a clock.
//
// A master tells that a key was written, not what it is now, and tells of
// several writes at once. A change is told when a quorum of masters told of it,
// because then it may be a lock's end, or shortly after the first if the rest
// does not come. What comes afterwards is another change, for it may be what
// completed a quorum. That is one event too many at most for each burst.

// A keyChange is of one key, or of any.
type keyChange struct {
	key string
	any bool
}

// A burst is a change that some masters have told of.
type burst struct {
	change  keyChange
	first   time.Time
	masters []bool
	copies  int
	told    bool
}

// keyChanges collects what masters tell of changed keys. Its owner guards it.
type keyChanges struct {
	masters int
	tell    func(keyChange)

	bursts  map[keyChange]*burst // those not told
	waiting []*burst             // by first; some are told already
}

const (
	changeGrace = 15 * time.Millisecond
	maxBursts   = 1 << 16 // what comes beyond is told at once
)

func newKeyChanges(masters int, tell func(keyChange)) *keyChanges {
	return &keyChanges{masters: masters, tell: tell, bursts: map[keyChange]*burst{}}
}

// count takes a master's word that a key has changed.
func (c *keyChanges) count(change keyChange, master int, now time.Time) {
	b := c.bursts[change]
	if b == nil {
		if len(c.waiting) >= maxBursts {
			c.tell(change)
			return
		}
		b = &burst{change: change, first: now, masters: make([]bool, c.masters)}
		c.bursts[change] = b
		c.waiting = append(c.waiting, b)
	}
	if b.masters[master] {
		return // what will be told comes after both
	}
	b.masters[master] = true
	if b.copies++; b.copies >= quorum.Size(c.masters) {
		c.end(b)
	}
}

func (c *keyChanges) end(b *burst) {
	if b.told {
		return
	}
	b.told = true
	delete(c.bursts, b.change)
	c.tell(b.change)
}

// settle tells what has waited for its quorum long enough.
func (c *keyChanges) settle(now time.Time) {
	for len(c.waiting) > 0 {
		b := c.waiting[0]
		if !b.told && now.Before(b.first.Add(changeGrace)) {
			return
		}
		c.waiting[0], c.waiting = nil, c.waiting[1:]
		c.end(b)
	}
}

// next is when settle has something to do.
func (c *keyChanges) next() (at time.Time, ok bool) {
	if len(c.waiting) == 0 {
		return time.Time{}, false
	}
	return c.waiting[0].first.Add(changeGrace), true
}
