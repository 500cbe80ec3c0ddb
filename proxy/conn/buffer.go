package conn

import "sync"

// A reader keeps a small buffer while it is idle and borrows a large one while it is
// busy.
const (
	SmallBuffer = 1 << 10  // what an idle connection keeps
	LargeBuffer = 32 << 10 // what a busy one borrows
)

// BorrowBuffer takes a large buffer from the pool; the caller gives it back with
// ReturnBuffer and keeps nothing of it.
func BorrowBuffer() *[LargeBuffer]byte { return largeBuffers.Get().(*[LargeBuffer]byte) }

// ReturnBuffer ends BorrowBuffer.
func ReturnBuffer(buf *[LargeBuffer]byte) { largeBuffers.Put(buf) }

var largeBuffers = sync.Pool{New: func() any { return new([LargeBuffer]byte) }}
