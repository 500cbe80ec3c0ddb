package redlock

import (
	"sync"
	"time"

	"redlock-proxy/redlock/resp"
)

// A debt is something that a master still has to be told after its connection
// broke: take back a grant, delete a released lock, set a missed expiry. It is
// delivered by value, so that another holder's lock under the same key stays.
type debt struct {
	exact  []byte // a whole command that is safe at any time; or else:
	script string
	key    string
	value  string
	life   *lifetime // of the instance of the lock it concerns; nil: for ever
	ttl    time.Time // expiry debts only: when the lock shall expire
	// blind: a write of the key was unanswered when the connection broke, so
	// the master may execute it late and with a full, fresh TTL. Then the
	// remaining TTL does not tell this instance from a later one.
	blind bool
}

// shortValue is the length below which a value may be a constant shared by
// many clients (such as "1"): by it one cannot tell whose lock it is.
const shortValue = 16

// maxDebts bounds what is kept for one master and database. An acquire that
// finds no room for its undo does not ask that master.
const maxDebts = 1 << 16

// maxDebtBytes bounds them likewise by their size, for values may be large.
const maxDebtBytes = 16 << 20

// size is how many bytes a debt takes, about.
func (d *debt) size() int {
	const itself = 128
	return len(d.exact) + len(d.key) + len(d.value) + itself
}

// over tells whether the debt is settled by the passing of time alone. The
// caller has made sure that no earlier write of the key can still be executed.
func (d *debt) over(now time.Time) bool {
	if d.exact != nil {
		return false
	}
	if !d.ttl.IsZero() {
		return !now.Before(d.ttl)
	}
	end, ends := d.life.end()
	return !d.blind && ends && now.After(end)
}

// append encodes the debt as one command as of now. Right behind the command
// it follows, on the same connection, nothing is spared; later a release spares
// what can be told to be another instance of the lock: skew is by how much the
// masters' copies of one instance may end apart.
func (d *debt) append(dst []byte, now time.Time, later bool, skew time.Duration) []byte {
	if d.exact != nil {
		return append(dst, d.exact...)
	}
	end, ends := d.life.end()
	limit := int64(anyLifetime)
	switch {
	case !d.ttl.IsZero():
		limit = max(1, d.ttl.Sub(now).Milliseconds())
	case !later || len(d.value) >= shortValue && (d.blind || !ends):
	case !ends:
		limit = onlyPermanent
	default:
		// A later instance of a lock with this value ends later than ours.
		limit = max(0, end.Add(skew).Sub(now).Milliseconds()) + expiryRounding
	}
	return resp.AppendEval(dst, d.script, [][]byte{[]byte(d.key)}, []byte(d.value), resp.Decimal(limit))
}

// expiryRounding is by how many milliseconds two readings of one absolute expiry may
// differ: TIME and PTTL are each rounded down.
const expiryRounding = 2

// What release.lua spares besides instances that live longer than its limit.
const (
	anyLifetime   = -1 // nothing
	onlyPermanent = -2 // every instance that expires
)

// A lifetime is when a lock ends at the latest, as far as is known. Masters
// that answer late may still prolong it.
type lifetime struct {
	mu    sync.Mutex
	until time.Time // zero: never
}

// newLifetime is that of a lock that ends then; the zero time: never.
func newLifetime(until time.Time) *lifetime { return &lifetime{until: until} }

// end is when it ends, and whether it does.
func (l *lifetime) end() (end time.Time, ends bool) {
	if l == nil {
		return time.Time{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until, !l.until.IsZero()
}

// reach prolongs it; the zero time means for ever.
func (l *lifetime) reach(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end.IsZero() || !l.until.IsZero() && end.After(l.until) {
		l.until = end
	}
}

// become makes it as long as another one, longer or not.
func (l *lifetime) become(m *lifetime) {
	end, _ := m.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = end
}
