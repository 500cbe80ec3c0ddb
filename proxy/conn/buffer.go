package conn

import "sync"

// A reader borrows a small buffer for most commands, and a large one for long ones.
const (
	SmallBuffer = 1 << 10  // bytes
	LargeBuffer = 32 << 10 // bytes
)

var smallBuffers = sync.Pool{New: func() any { return new([SmallBuffer]byte) }}

var largeBuffers = sync.Pool{New: func() any { return new([LargeBuffer]byte) }}
