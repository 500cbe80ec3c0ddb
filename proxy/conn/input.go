package conn

import (
	"errors"
	"sync"

	"redlock-proxy/redlock/loop"
)

// ErrNothing means that nothing has come yet. The loop unparks the socket's task when something
// does. ErrNoMemory means that the buffers of all sessions together would exceed the
// configured memory. ErrQueryTooLong means that one session's unfinished command would
// exceed its own limit.
var (
	ErrNothing      = errors.New("nothing has come yet")
	ErrNoMemory     = errors.New("memory for unfinished commands is used up")
	ErrQueryTooLong = errors.New("an unfinished command is too long")
)

// aheadLimit bounds the bytes read ahead for a busy session. If a client sends more and
// then leaves, nobody notices before the session reads again.
const aheadLimit = 1 << 20

// unmindedLimit is the bound if a loop reads and no minder has begun. Then the session waits for
// a client that does not read, and it does not matter whether that client leaves.
const unmindedLimit = 32 << 10

// An Input holds the bytes that a client sent and the session has not consumed. Slices
// of Unread stay valid until the next Fill.
type Input struct {
	from   *Socket
	budget *Budget
	most   int64 // bytes that may be unread

	buf      []byte
	start    int // buf[start:end] is unread
	end      int
	small    []byte             // nil for an attached input, which holds a buffer only while it has bytes
	borrowed *[LargeBuffer]byte // buf's array if it belongs to the pool
	pooled   *[SmallBuffer]byte // the same for a small one, which only an attached input has
	reserved int                // bytes of the budget that a large buf takes
	trusted  bool               // the usual large buffer is never refused
	lastRead int
	consumed int64 // bytes ever consumed
	need     int   // length of the unfinished command in bytes; 0 if unknown

	mu       sync.Mutex // for an attached socket it guards all below, and buf while filling
	ahead    []byte     // read while the session was busy
	err      error      // the end of the stream, if it was read ahead
	filling  bool       // from a Fill until EndFill; what comes belongs into buf
	paused   bool       // the loop does not read
	released bool       // Release was called
	minded   bool       // the minder of an attached socket has begun
}

// NewInput makes an empty input of a client that has not logged in. Its large buffers count against
// the budget.
func NewInput(from *Socket, budget *Budget) *Input {
	return &Input{from: from, budget: budget}
}

// Attach has a loop read the input's socket, if it can (Socket.Attach). The task is the one that
// calls Fill, and minder looks after its client.
func (in *Input) Attach(l *loop.Loop, task *loop.Task, minder *Minder) bool {
	if !in.from.Attach(l, task, ahead{in, minder}) {
		return false
	}
	in.from.Resume()
	return true
}

// Unread is the bytes that were read and not consumed.
func (in *Input) Unread() []byte { return in.buf[in.start:in.end] }

// Consume drops the first n unread bytes.
func (in *Input) Consume(n int) {
	in.start += n
	in.consumed += int64(n)
}

// Filled is the number of bytes that Fill has ever returned. Arrived counts those that were read
// ahead, too.
func (in *Input) Filled() int64 { return in.consumed + int64(len(in.Unread())) }
func (in *Input) Arrived() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.Filled() + int64(len(in.ahead))
}

// Offset is the position of Unread, for Between. It is valid until the next Fill.
func (in *Input) Offset() int { return in.start }

// Between is the bytes between two offsets.
func (in *Input) Between(from, to int) []byte { return in.buf[from:to] }

// Expect sets the whole length of the unfinished command in bytes, or 0 if unknown.
func (in *Input) Expect(need int) { in.need = need }

// SetLimit bounds the unread bytes from now on.
func (in *Input) SetLimit(most int64) { in.most = most }

// SetTrusted says whether the client has logged in. Others get no large buffer beyond the budget.
func (in *Input) SetTrusted(yes bool) { in.trusted = yes }

// Fill waits for more bytes. Memory grows with the bytes that came, not with the length
// that a client announced. Errors are the socket's, ErrWoken, ErrNoMemory or
// ErrQueryTooLong. Where a loop reads, Fill does not wait: it returns ErrNothing, and the caller
// calls EndFill before it uses the input again.
func (in *Input) Fill() error {
	if in.from.Attached() {
		return in.fillAttached()
	}
	if in.small == nil {
		in.small = make([]byte, SmallBuffer)
		in.buf = in.small
	}
	if err := in.makeRoom(in.need); err != nil {
		return err
	}
	if len(in.ahead) > 0 {
		in.lastRead = copy(in.buf[in.end:], in.ahead)
		in.end += in.lastRead
		in.dropAhead(in.lastRead)
		return nil
	}
	if in.err != nil {
		return in.err
	}
	n, err := in.from.Read(in.buf[in.end:])
	in.end += n
	in.lastRead = n
	if n > 0 {
		return nil // the next read returns the error again
	}
	return err
}

// hasRoomAhead tells whether n more bytes may be read ahead.
func (in *Input) hasRoomAhead(n int) bool {
	return len(in.ahead)+n <= aheadLimit && in.budget.HasRoom(n)
}

// keepAhead keeps bytes that were read ahead. It cannot refuse them, so the caller asks
// hasRoomAhead before it reads.
func (in *Input) keepAhead(p []byte) {
	in.budget.Use(len(p))
	in.ahead = append(in.ahead, p...)
}

// IsLarge tells whether the unfinished command is so large that making room for it takes long.
func (in *Input) IsLarge() bool { return max(in.need, len(in.Unread())) > 8*LargeBuffer }

// endAhead sets the error that ended the stream. Fill returns it after the bytes that
// were read ahead.
func (in *Input) endAhead(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.err = err
}

// endedAhead is what endAhead set, or nil.
func (in *Input) endedAhead() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err
}

func (in *Input) makeRoom(need int) error {
	if in.start == in.end {
		in.start, in.end = 0, 0
		if in.lastRead < SmallBuffer {
			in.shrink()
		}
	}
	if in.start > 0 && (in.end == len(in.buf) || need > len(in.buf)-in.start) {
		in.end = copy(in.buf, in.Unread())
		in.start = 0
	}
	if in.end < len(in.buf) && need <= len(in.buf) || in.end < len(in.buf)/2 {
		return nil
	}
	return in.grow(need)
}

func (in *Input) grow(need int) error {
	if len(in.buf) < LargeBuffer {
		if !in.trusted && !in.budget.HasRoom(LargeBuffer) {
			return ErrNoMemory
		}
		in.budget.Use(LargeBuffer)
		in.reserved = LargeBuffer
		in.borrowed = BorrowBuffer()
		copy(in.borrowed[:], in.Unread())
		if in.pooled != nil {
			smallBuffers.Put(in.pooled)
			in.pooled = nil
		}
		in.buf, in.end, in.start = in.borrowed[:], in.end-in.start, 0
		in.from.SetLargeBuffer(true)
		return nil
	}
	if int64(len(in.Unread())) > in.most {
		return ErrQueryTooLong
	}
	size := 2 * len(in.buf)
	if need > len(in.buf) {
		size = min(size, need)
	}
	size = int(min(int64(size), max(in.most, LargeBuffer)+1))
	if !in.budget.Reserve(size) {
		return ErrNoMemory
	}
	larger := make([]byte, size)
	n := copy(larger, in.Unread())
	in.giveBack()
	in.buf, in.start, in.end, in.reserved = larger, 0, n, size
	in.from.SetLargeBuffer(true)
	return nil
}

// Shrink gives memory back while the client is silent.
func (in *Input) Shrink() {
	if in.start == in.end {
		in.start, in.end = 0, 0
		in.shrink()
	}
}

// Release gives all memory back. The input must not be used afterwards.
func (in *Input) Release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.giveBack()
	in.budget.Release(len(in.ahead))
	in.buf, in.small, in.ahead, in.start, in.end = nil, nil, nil, 0, 0
	in.released = true
}

// shrink returns to the small buffer. Nothing may be unread.
func (in *Input) shrink() {
	if len(in.buf) == len(in.small) {
		return
	}
	in.giveBack()
	in.buf = in.small
	in.from.SetLargeBuffer(false)
}

func (in *Input) giveBack() {
	if in.borrowed != nil {
		ReturnBuffer(in.borrowed)
		in.borrowed = nil
	}
	if in.pooled != nil {
		smallBuffers.Put(in.pooled)
		in.pooled = nil
	}
	in.budget.Release(in.reserved)
	in.reserved = 0
}
