package stream

import (
	_ "embed"
	"sync"
	"time"

	"redlock-proxy/redlock/resp"
)

// The scripts of a Debt. The stream sends them as EVAL, because their texts are short and
// a SCRIPT FLUSH on the master then does no harm.
var (
	// ReleaseScript deletes a key if it has the value and lives no longer than the lock.
	//go:embed release.lua
	ReleaseScript string
	// ExpireScript sets the expiry of a key if it has the value.
	//go:embed expire.lua
	ExpireScript string
)

// A Debt is a command that a master must still receive after its connection broke. It
// takes back a grant, deletes a released lock, or sets a missed expiry. It compares the
// value, so that another holder's lock under the same key stays. Several streams may keep
// the same Debt, so nobody changes it afterwards.
type Debt struct {
	Exact  []byte // an encoded command that is safe at any time; nil: the fields below count
	Script string // ReleaseScript or ExpireScript
	Key    string
	Value  string
	Life   *Lifetime // of the instance of the lock; nil: it never ends
	Ttl    time.Time // when the lock shall expire; zero unless Script is ExpireScript
	// Endless means that the lock had no TTL before, so its copy stays for ever where Ttl is not told.
	Endless bool
	// Blind means that a write of the key was unanswered when the connection broke, or is
	// so when the debt is sent behind it. The master may execute that write late, with a
	// full, fresh TTL. Then the remaining TTL does not distinguish this instance from a
	// later one.
	Blind bool
}

// ShortValue is the length below which many clients may share one constant value, such as
// "1". Such a value does not identify the holder of a lock.
const ShortValue = 16

// maxDebts bounds the debts kept for one master and database. An acquire does not ask a
// master that has no room for its undo.
const maxDebts = 1 << 16

// maxDebtBytes bounds the bytes of these debts, because values may be large.
const maxDebtBytes = 16 << 20

// size estimates the bytes that a debt takes.
func (d *Debt) size() int {
	const itself = 128
	return len(d.Exact) + len(d.Key) + len(d.Value) + itself
}

// over tells whether the passing of time alone has settled the debt. The caller has made
// sure that the master can execute no earlier write of the key any more.
func (d *Debt) over(now time.Time) bool {
	if d.Exact != nil {
		return false
	}
	if !d.Ttl.IsZero() {
		// A short value may be that of a later lock, which has no TTL yet.
		return !now.Before(d.Ttl) && !(d.Endless && len(d.Value) >= ShortValue)
	}
	end, ends := d.Life.end()
	return !d.Blind && ends && now.After(end)
}

// append encodes the debt as one command, as of now. If later is false, the command
// follows its acquire on the same connection, and it spares nothing. If later is true, a
// release spares every instance that it can recognise as another one. skew is the largest
// difference between the masters' ends of one instance.
func (d *Debt) append(dst []byte, now time.Time, later bool, skew time.Duration) []byte {
	if d.Exact != nil {
		return append(dst, d.Exact...)
	}
	end, ends := d.Life.end()
	limit := int64(AnyLifetime)
	switch {
	case !d.Ttl.IsZero():
		limit = max(1, d.Ttl.Sub(now).Milliseconds())
	case !later || len(d.Value) >= ShortValue && (d.Blind || !ends):
	case !ends:
		limit = onlyPermanent
	default:
		// A later instance of a lock with this value ends later than ours.
		limit = max(0, end.Add(skew).Sub(now).Milliseconds()) + resp.ExpiryTolerance
	}
	return resp.AppendEval(dst, d.Script, [][]byte{[]byte(d.Key)}, []byte(d.Value), resp.Decimal(limit))
}

// Special limits for release.lua, which otherwise spares instances that live longer than
// the limit.
const (
	AnyLifetime   = -1 // it spares nothing
	onlyPermanent = -2 // it spares every instance that expires
)

// A Lifetime is the latest known end of a lock. Masters that answer late may still
// prolong it. All goroutines may use it.
type Lifetime struct {
	mu    sync.Mutex
	until time.Time // zero: never
}

// NewLifetime makes a Lifetime that ends at until. The zero time means that it never
// ends.
func NewLifetime(until time.Time) *Lifetime { return &Lifetime{until: until} }

// end returns the end, and whether there is one. A nil Lifetime never ends.
func (l *Lifetime) end() (end time.Time, ends bool) {
	if l == nil {
		return time.Time{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until, !l.until.IsZero()
}

// Reach prolongs the lifetime to end, and never shortens it. The zero time means for
// ever.
func (l *Lifetime) Reach(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end.IsZero() || !l.until.IsZero() && end.After(l.until) {
		l.until = end
	}
}

// Become sets the lifetime to that of m, whether it is longer or shorter. If several
// goroutines call it while m is prolonged, the longest stays. m must be another one.
func (l *Lifetime) Become(m *Lifetime) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, _ = m.end()
}

// Set makes the lifetime end at end, whether that is later or earlier.
func (l *Lifetime) Set(end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = end
}
