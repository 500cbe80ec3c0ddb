package notify

import (
	"time"

	"redlock-proxy/redlock/quorum"
)

// This file decides when to report a changed key. Nothing here waits or reads a clock.
//
// A master reports that a key was written, but not its value. It reports several writes
// at once. A change is reported when a quorum of masters has reported it, because then it
// may be the end of a lock. Without a quorum it is reported shortly after the first. What
// comes afterwards counts as another change, because it may be what completed a quorum.
// That is at most one event too many for each burst.

// A keyChange is a change of one key, or of any key.
type keyChange struct {
	key string
	any bool
}

// A burst is a change that some masters have reported.
type burst struct {
	change  keyChange
	first   time.Time
	masters quorum.Set
	told    bool
}

// keyChanges collects the masters' reports of changed keys. Its owner guards it.
type keyChanges struct {
	masters int
	tell    func(keyChange)

	bursts  map[keyChange]*burst // the bursts that were not reported
	waiting []*burst             // ordered by first; some are reported already
}

const (
	changeGrace = 15 * time.Millisecond
	maxBursts   = 1 << 16 // further changes are reported at once
)

func newKeyChanges(masters int, tell func(keyChange)) *keyChanges {
	return &keyChanges{masters: masters, tell: tell, bursts: map[keyChange]*burst{}}
}

// count counts a master's report that a key has changed.
func (c *keyChanges) count(change keyChange, master int, now time.Time) {
	b := c.bursts[change]
	if b == nil {
		if len(c.waiting) >= maxBursts {
			c.tell(change)
			return
		}
		b = &burst{change: change, first: now}
		c.bursts[change] = b
		c.waiting = append(c.waiting, b)
	}
	b.masters |= 1 << master // perhaps a second time: the one report comes after both
	if b.masters.Len() >= quorum.Size(c.masters) {
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

// settle reports the changes that have waited long enough for their quorum.
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

// next returns when settle must run again. It returns false if nothing waits.
func (c *keyChanges) next() (at time.Time, ok bool) {
	if len(c.waiting) == 0 {
		return time.Time{}, false
	}
	return c.waiting[0].first.Add(changeGrace), true
}
