package pubsub

import (
	"bytes"
	"slices"
	"time"

	"redlock-proxy/redlock/resp"
)

// A client that tracks with NOLOOP wants no invalidation for its own changes. A holder
// that gets one for its own extension would extend again and again. But the masters do
// not say who changed a key. So the listener makes a self-change check if the client's
// last command may have changed the key: it reads the key.
//
//   - If the key holds one of the values in that command's arguments, the client is
//     still the holder and gets no invalidation.
//   - Otherwise the client gets one, perhaps once too often.
//
// Every change leads to another check. So a change by another client is never hidden,
// unless that client stores the same value.
//
// The first check also notes when the key expires, as the client's command left it. If a
// later check finds another time, another client changed it, and the client gets an
// invalidation.

// ownCommand holds the values in the arguments of a client's last command on a key.
// Values are secrets: they are compared, and never used for anything else.
type ownCommand struct {
	db     int
	values [][]byte
	expiry *keyExpiry // from the first check; nil before it. Guarded by the listener's mu
}

// keyExpiry is the time when a key expires, as an interval, because a reply takes time.
type keyExpiry struct {
	never            bool
	earliest, latest time.Time
}

// expiryTolerance is the largest difference between the times at which the masters' copies
// of a lock expire, as read by the proxy. Clients do not shorten or extend a lock by so
// little.
const expiryTolerance = 100 * time.Millisecond

func (e keyExpiry) sameAs(f keyExpiry) bool {
	if e.never || f.never {
		return e.never == f.never
	}
	return !e.earliest.After(f.latest.Add(expiryTolerance)) && !f.earliest.After(e.latest.Add(expiryTolerance))
}

// keepsExpiry tells whether the key still expires at the time that the first check noted.
// The first call notes the time and returns true. A nil expiry is unknown; then keepsExpiry
// returns true.
func (c *ownCommand) keepsExpiry(expiry *keyExpiry) bool {
	switch {
	case expiry == nil:
		return true
	case c.expiry == nil:
		c.expiry = expiry
		return true
	}
	return c.expiry.sameAs(*expiry)
}

// checkSelfChange makes a self-change check: it reads a key that the client itself may have
// changed, and invalidates the key if another client changed it.
func (l *Listener) checkSelfChange(key string) {
	own := l.beginCheck(key)
	if own == nil {
		return
	}
	value, _ := resp.ParseBulk(l.peek(l.ctx, own.db, "GET", key))
	expiry := l.readExpiry(own.db, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.entryToCheck(key)
	switch {
	case entry == nil:
	case entry.running > 0:
		entry.changed = true // checked again, with the values of the running command
	case entry.own.hasValue(value) && entry.own.keepsExpiry(expiry):
	default:
		entry.own = nil
		l.change(key, entry)
	}
}

// readExpiry asks the masters when a key expires. It returns nil if they cannot tell.
func (l *Listener) readExpiry(db int, key string) *keyExpiry {
	asked := time.Now()
	reply := l.peek(l.ctx, db, "PTTL", key)
	answered := time.Now()
	left, ok := resp.ParseInteger(reply)
	switch {
	case !ok || left < -1:
		return nil
	case left == -1:
		return &keyExpiry{never: true}
	}
	life := time.Duration(left) * time.Millisecond
	return &keyExpiry{earliest: asked.Add(life), latest: answered.Add(life)}
}

// beginCheck returns the client's own command, to compare its values with a key. It returns
// nil if no check is needed any more. A change after this call leads to another check.
func (l *Listener) beginCheck(key string) *ownCommand {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.entryToCheck(key)
	if entry == nil {
		return nil
	}
	entry.checkQueued = false
	if entry.own == nil || entry.running > 0 {
		l.change(key, entry)
		return nil
	}
	return entry.own
}

// entryToCheck returns the entry of a key to be checked. It returns nil if the entry is gone:
// the client got its invalidation already, or ended tracking. With BCAST entryToCheck itself
// queues an invalidation then. The caller holds mu.
func (l *Listener) entryToCheck(key string) *trackedKey {
	if l.tracked == nil {
		return nil
	}
	entry := l.tracked.keys[key]
	if entry == nil && l.tracked.mode.Broadcast {
		l.enqueue(newItem(itemInvalidation, []byte(key)))
	}
	return entry
}

// hasValue tells whether value is one of the command's. It returns false if c is nil.
func (c *ownCommand) hasValue(value []byte) bool {
	return c != nil && slices.ContainsFunc(c.values, func(mine []byte) bool { return bytes.Equal(mine, value) })
}
