package conn

import "sync/atomic"

// A Budget is the memory that buffers beyond the ordinary may take together.
type Budget struct {
	limit func() int64
	used  atomic.Int64
}

// NewBudget makes a budget whose limit may change at any time.
func NewBudget(limit func() int64) *Budget { return &Budget{limit: limit} }

// InUse is how much is taken.
func (b *Budget) InUse() int64 { return b.used.Load() }

// Reserve takes n bytes if there are so many; fewer than none are given back.
func (b *Budget) Reserve(n int) bool {
	if b.used.Add(int64(n)) > b.limit() && n > 0 {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// Charge is Reserve with ErrNoMemory for its false.
func (b *Budget) Charge(n int) error {
	if !b.Reserve(n) {
		return ErrNoMemory
	}
	return nil
}

// Use takes bytes that are there already and cannot be refused.
func (b *Budget) Use(n int) { b.used.Add(int64(n)) }

// HasRoom tells whether Reserve would have n bytes now.
func (b *Budget) HasRoom(n int) bool { return b.used.Load()+int64(n) <= b.limit() }

// Release gives n bytes back.
func (b *Budget) Release(n int) { b.used.Add(-int64(n)) }
