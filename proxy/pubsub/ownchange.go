package pubsub

import (
	"bytes"
	"slices"
	"time"

	"redlock-proxy/redlock"
	"redlock-proxy/redlock/resp"
)

// A client that tracks with NOLOOP wants no news of what it did itself: a
// holder that were woken by its own extension would extend again and again.
// The masters do not say who changed a key. So where the client's last command
// on the key may have changed it, the key is looked at: while it holds one of
// the values that this command brought along, the client is still its holder
// and is told nothing. Whatever else is found, it is told: that may be once too
// often, but a change by somebody else is never kept from it, unless that one
// stores the same value: every change has the key looked at again. The first look
// shows when the key ends as that command has left it; where a later one shows
// another end, somebody else has changed that.

// OwnCommand is what a client's last command on a key brought along. Values
// are secrets: they are only ever compared.
type OwnCommand struct {
	db     int
	values [][]byte
	end    *keyEnd // as it was seen first; nil: not yet. Guarded by the listener's mu
}

// Brought makes an OwnCommand of the values that the command has in its arguments.
func Brought(db int, values [][]byte) *OwnCommand { return &OwnCommand{db: db, values: values} }

// keyEnd is when a key ends, as far as can be told.
type keyEnd struct {
	never            bool
	earliest, latest time.Time
}

// endTolerance is by how much masters' copies of a lock, and what is seen of them,
// may differ. Nobody shortens or lengthens a lock by so little.
const endTolerance = 100 * time.Millisecond

func (e keyEnd) sameAs(f keyEnd) bool {
	if e.never || f.never {
		return e.never == f.never
	}
	return !e.earliest.After(f.latest.Add(endTolerance)) && !f.earliest.After(e.latest.Add(endTolerance))
}

// staysAs notes when the key ends, and tells whether that is as it was. What
// cannot be told now is as it was.
func (c *OwnCommand) staysAs(end *keyEnd) bool {
	switch {
	case end == nil:
		return true
	case c.end == nil:
		c.end = end
		return true
	}
	return c.end.sameAs(*end)
}

// settleDoubt looks at a key that the client itself may have changed.
func (l *Listener) settleDoubt(key string) {
	own := l.beginDoubt(key)
	if own == nil {
		return
	}
	value, _ := resp.ParseBulk(l.host.Peek(l.ctx, own.db, "GET", key))
	end := l.lookForEnd(own.db, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.doubted(key)
	switch {
	case entry == nil:
	case entry.underWay > 0:
		entry.changed = true // looked at again, against what that command brings
	case entry.own.stored(value) && entry.own.staysAs(end):
	default:
		entry.own = nil
		l.change(key, entry)
	}
}

// lookForEnd is nil where the masters cannot tell.
func (l *Listener) lookForEnd(db int, key string) *keyEnd {
	asked := time.Now()
	reply := l.host.Peek(l.ctx, db, "PTTL", key)
	answered := time.Now()
	left, ok := resp.ParseInteger(reply)
	switch {
	case !ok || left < -1:
		return nil
	case left == -1:
		return &keyEnd{never: true}
	}
	life := time.Duration(left) * time.Millisecond
	return &keyEnd{earliest: asked.Add(life), latest: answered.Add(life)}
}

// beginDoubt returns what a key is to be compared with; nil: there is no doubt
// any more. From here on another change is another doubt.
func (l *Listener) beginDoubt(key string) *OwnCommand {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := l.doubted(key)
	if entry == nil {
		return nil
	}
	entry.doubted = false
	if entry.own == nil || entry.underWay > 0 {
		l.change(key, entry)
		return nil
	}
	return entry.own
}

// doubted is a doubted key's entry, nil if there is none any more: then the
// client was told already, or has ended its tracking. With BCAST it is told
// here. The caller holds mu.
func (l *Listener) doubted(key string) *trackedKey {
	if l.tracked == nil {
		return nil
	}
	entry := l.tracked.keys[key]
	if entry == nil && l.tracked.mode.Broadcast {
		l.post(newNotice(noticeInvalid, []byte(key)))
	}
	return entry
}

// stored: the command brought that value along.
func (c *OwnCommand) stored(value []byte) bool {
	return c != nil && slices.ContainsFunc(c.values, func(mine []byte) bool { return bytes.Equal(mine, value) })
}

var _ Source = (*redlock.Subscriber)(nil)
