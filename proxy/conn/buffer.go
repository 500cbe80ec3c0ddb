package conn

import "sync"

// A reader keeps a small buffer while it is idle and borrows a large one while it is
// busy.
const (
	SmallBuffer = 1 << 10  // bytes, for an idle connection
	LargeBuffer = 32 << 10 // bytes, for a busy one
)

// BorrowBuffer takes a large buffer from the pool. The caller gives it back with
// ReturnBuffer and must not use it afterwards.
func BorrowBuffer() *[LargeBuffer]byte { return largeBuffers.Get().(*[LargeBuffer]byte) }

// ReturnBuffer gives back a buffer from BorrowBuffer.
func ReturnBuffer(buf *[LargeBuffer]byte) { largeBuffers.Put(buf) }

var smallBuffers = sync.Pool{New: func() any { return new([SmallBuffer]byte) }}

var largeBuffers = sync.Pool{New: func() any { return new([LargeBuffer]byte) }}
