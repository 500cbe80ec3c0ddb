package stream

import (
	"sync"
	"time"

	"redlock-proxy/redlock/resp"
)

// A Debt is something that a master still has to be told after its connection
// broke: take back a grant, delete a released lock, set a missed expiry. It is
// delivered by value, so that another holder's lock under the same key stays.
type Debt struct {
	Exact  []byte // a whole command that is safe at any time; or else:
	Script string
	Key    string
	Value  string
	Life   *Lifetime // of the instance of the lock it concerns; nil: for ever
	Ttl    time.Time // expiry debts only: when the lock shall expire
	// blind: a write of the key was unanswered when the connection broke, so
	// the master may execute it late and with a full, fresh TTL. Then the
	// remaining TTL does not tell this instance from a later one.
	Blind bool
}

// ShortValue is the length below which a value may be a constant shared by
// many clients (such as "1"): by it one cannot tell whose lock it is.
const ShortValue = 16

// maxDebts bounds what is kept for one master and database. An acquire that
// finds no room for its undo does not ask that master.
const maxDebts = 1 << 16

// MaxDebtBytes bounds them likewise by their size, for values may be large.
const MaxDebtBytes = 16 << 20

// size is how many bytes a debt takes, about.
func (d *Debt) size() int {
	const itself = 128
	return len(d.Exact) + len(d.Key) + len(d.Value) + itself
}

// over tells whether the debt is settled by the passing of time alone. The
// caller has made sure that no earlier write of the key can still be executed.
func (d *Debt) over(now time.Time) bool {
	if d.Exact != nil {
		return false
	}
	if !d.Ttl.IsZero() {
		return !now.Before(d.Ttl)
	}
	end, ends := d.Life.end()
	return !d.Blind && ends && now.After(end)
}

// append encodes the debt as one command as of now. Right behind the command
// it follows, on the same connection, nothing is spared; later a release spares
// what can be told to be another instance of the lock: skew is by how much the
// masters' copies of one instance may end apart.
func (d *Debt) append(dst []byte, now time.Time, later bool, skew time.Duration) []byte {
	if d.Exact != nil {
		return append(dst, d.Exact...)
	}
	end, ends := d.Life.end()
	limit := int64(anyLifetime)
	switch {
	case !d.Ttl.IsZero():
		limit = max(1, d.Ttl.Sub(now).Milliseconds())
	case !later || len(d.Value) >= ShortValue && (d.Blind || !ends):
	case !ends:
		limit = onlyPermanent
	default:
		// A later instance of a lock with this value ends later than ours.
		limit = max(0, end.Add(skew).Sub(now).Milliseconds()) + expiryRounding
	}
	return resp.AppendEval(dst, d.Script, [][]byte{[]byte(d.Key)}, []byte(d.Value), resp.Decimal(limit))
}

// expiryRounding is by how many milliseconds two readings of one absolute expiry may
// differ: TIME and PTTL are each rounded down.
const expiryRounding = 2

// What release.lua spares besides instances that live longer than its limit.
const (
	anyLifetime   = -1 // nothing
	onlyPermanent = -2 // every instance that expires
)

// A Lifetime is when a lock ends at the latest, as far as is known. Masters
// that answer late may still prolong it.
type Lifetime struct {
	mu    sync.Mutex
	until time.Time // zero: never
}

// NewLifetime is that of a lock that ends then; the zero time: never.
func NewLifetime(until time.Time) *Lifetime { return &Lifetime{until: until} }

// end is when it ends, and whether it does.
func (l *Lifetime) end() (end time.Time, ends bool) {
	if l == nil {
		return time.Time{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until, !l.until.IsZero()
}

// Reach prolongs it; the zero time means for ever.
func (l *Lifetime) Reach(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end.IsZero() || !l.until.IsZero() && end.After(l.until) {
		l.until = end
	}
}

// Become makes it as long as another one, longer or not.
func (l *Lifetime) Become(m *Lifetime) {
	end, _ := m.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = end
}
