package session

import (
	"math/bits"
	"sync"
)

// A reader borrows a small buffer for most commands, and a large one for long ones.
const (
	SmallBuffer = 1 << 10  // bytes
	LargeBuffer = 32 << 10 // bytes

	// mostPooled bounds those that others may borrow.
	mostPooled = 4 << 20
)

// A buffer is bytes that a pool lends. Their number is a power of two, up to mostPooled. A client that sends large
// values needs the same buffers again and again, and new ones would have to be cleared.
type buffer struct{ bytes []byte }

var pools [64]sync.Pool // by the power

// roundUp is the least size of a buffer for so many bytes.
func roundUp(size int) int {
	if size > mostPooled {
		return size
	}
	return 1 << bits.Len(uint(size-1))
}

// borrow returns a buffer of a size that roundUp returns.
func borrow(size int) *buffer {
	if b, ok := pools[bits.Len(uint(size-1))].Get().(*buffer); ok && size <= mostPooled {
		return b
	}
	return &buffer{make([]byte, size)}
}

// giveBack lets others borrow the bytes.
func (b *buffer) giveBack() {
	if len(b.bytes) <= mostPooled {
		pools[bits.Len(uint(len(b.bytes)-1))].Put(b)
	}
}
