package session

import "sync/atomic"

// A Budget bounds the memory of all large buffers together, in bytes.
type Budget struct {
	limit func() int64
	used  atomic.Int64
}

// NewBudget makes a budget whose limit may change at any time.
func NewBudget(limit func() int64) *Budget { return &Budget{limit: limit} }

// InUse is the number of bytes taken.
func (b *Budget) InUse() int64 { return b.used.Load() }

// Reserve takes n bytes and returns true, or returns false if the limit forbids it. A
// negative n gives bytes back and always succeeds.
func (b *Budget) Reserve(n int) bool {
	if b.used.Add(int64(n)) > b.limit() && n > 0 {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// charge is Reserve with errNoMemory instead of false.
func (b *Budget) charge(n int) error {
	if !b.Reserve(n) {
		return errNoMemory
	}
	return nil
}

// Use takes n bytes that exist already, whatever the limit.
func (b *Budget) Use(n int) { b.used.Add(int64(n)) }

// HasRoom tells whether Reserve would grant n bytes now.
func (b *Budget) HasRoom(n int) bool { return b.used.Load()+int64(n) <= b.limit() }

// Release gives n bytes back.
func (b *Budget) Release(n int) { b.used.Add(-int64(n)) }
