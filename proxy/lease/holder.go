package lease

import (
	"time"

	"redlock-proxy/redlock"
)

// A Holder has the leases of one connection. The connection calls its methods, for several commands
// at once, and any goroutine Holds.
type Holder struct {
	keeper *Keeper
	lost   func()

	// The Keeper's mutex guards the rest.
	leases  map[*lease]struct{}
	hasLost bool
	gone    bool // it is closed
}

// NewHolder makes the Holder of a connection, which must Close it. lost ends the connection, because its
// client may work without its lock. The Keeper's goroutine calls it once. It must not block.
func (k *Keeper) NewHolder(lost func()) *Holder {
	return &Holder{keeper: k, lost: lost, leases: map[*lease]struct{}{}}
}

// Holds tells whether the connection has leases.
func (h *Holder) Holds() bool {
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	return len(h.leases) > 0
}

// Took notes that the connection took a lock. Its TTL counts from since; 0: it has none.
// value is nil if the lock is no string. The Holder copies what it keeps.
func (h *Holder) Took(db int, key, value []byte, ttl time.Duration, since time.Time) {
	h.took(db, key, value, false, ttl, since)
}

// took is Took for a string, or for a hash with value as the field that names the holder.
func (h *Holder) took(db int, key, value []byte, hash bool, ttl time.Duration, since time.Time) {
	k := h.keeper
	rule := k.Rule(db, key)
	if rule == (Rule{}) && !k.Any() {
		return
	}
	if since.IsZero() {
		since = time.Now()
	}
	t := newTerm(ttl, since, k.Limits())
	switch why, fits := h.take(db, key, value, hash, t, rule); {
	case why == notDue:
		return
	case !fits:
		k.refuse(why)
		return
	}
	if rule.Renew > 0 && ttl > 0 && t.brief {
		k.refuse(refusedTTL)
	}
}

// take ends the lease of an earlier lock. Then it makes one, unless a limit is reached.
func (h *Holder) take(db int, key, value []byte, hash bool, t term, rule Rule) (why refusal, fits bool) {
	k := h.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	if old := k.leases[place{db, string(key)}]; old != nil {
		if old.term.taken.After(t.taken) {
			return notDue, false
		}
		k.remove(old)
	}
	switch {
	case rule == Rule{}:
		return notDue, false
	case value == nil:
		return refusedType, false
	case len(key)+len(value) > maxLeaseSize:
		return refusedSize, false
	case len(k.queue) >= maxLeases || len(h.leases) >= maxOfHolder:
		return refusedNumber, false
	case k.closed || h.gone:
		return refusedDrain, false
	}
	k.add(&lease{place: place{db, string(key)}, value: string(value), hash: hash, holder: h, term: t})
	return 0, true
}

// loses notes that a lock was lost. It returns the holder the first time. The caller
// holds the Keeper's mutex.
func (h *Holder) loses() *Holder {
	if h.hasLost {
		return nil
	}
	h.hasLost = true
	return h
}

// Close ends all leases. If the client itself has left, locks of rules that say so are
// released. Close does not wait for that. A hash is not released: one thread has the same
// field each time, so it may have the lock again by another connection of its pool.
func (h *Holder) Close(left bool) {
	k := h.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	h.gone = true
	for l := range h.leases {
		if !left || !k.Rule(l.db, []byte(l.key)).Release {
			k.remove(l)
			continue
		}
		if l.hash || len(l.value) < redlock.ShortValue {
			k.releases[releaseShort].Add(1)
			k.remove(l)
			continue
		}
		delete(k.leases, l.place)
		delete(h.leases, l)
		now := time.Now()
		l.releasing, l.until = true, l.term.ends(now)
		k.wakeAt(l, now)
	}
}
