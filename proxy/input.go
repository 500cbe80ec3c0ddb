package proxy

import (
	"errors"
	"sync/atomic"
)

// errNoMemory means that what is buffered for all sessions together would take
// more memory than the configuration allows, errQueryTooLong that one session's
// unfinished command would.
var (
	errNoMemory     = errors.New("memory for unfinished commands is used up")
	errQueryTooLong = errors.New("an unfinished command is too long")
)

// aheadLimit bounds what is read ahead for a busy session. A client that sends
// more is not seen leaving until the session reads again.
const aheadLimit = 1 << 20

// A budget is the memory that buffers beyond the ordinary may take together.
type budget struct {
	limit func() int64
	used  atomic.Int64
}

func newBudget(limit func() int64) *budget { return &budget{limit: limit} }

// inUse is how much is taken.
func (b *budget) inUse() int64 { return b.used.Load() }

// reserve takes n bytes if there are so many; fewer than none are given back.
func (b *budget) reserve(n int) bool {
	if b.used.Add(int64(n)) > b.limit() && n > 0 {
		b.used.Add(-int64(n))
		return false
	}
	return true
}

// charge is reserve with an error.
func (b *budget) charge(n int) error {
	if !b.reserve(n) {
		return errNoMemory
	}
	return nil
}

// use takes bytes that are there already and cannot be refused.
func (b *budget) use(n int) { b.used.Add(int64(n)) }

func (b *budget) hasRoom(n int) bool { return b.used.Load()+int64(n) <= b.limit() }

func (b *budget) release(n int) { b.used.Add(-int64(n)) }

// An input holds what a client sent and the session has not yet done. Slices
// of unread stay valid until the next fill.
type input struct {
	from   *socket
	budget *budget
	most   int64 // bytes that may be unread

	buf      []byte
	start    int // buf[start:end] is unread
	end      int
	small    []byte
	borrowed *[largeBuffer]byte // buf's array while it is one of the pool
	reserved int                // what buf, larger still, takes of the budget
	lastRead int
	need     int // bytes that the unfinished command is known to want in all, 0 if unknown

	ahead []byte // read by the watch behind the session's back
	err   error  // what ended the stream, once that was met ahead
}

func newInput(from *socket, budget *budget) *input {
	in := &input{from: from, budget: budget, small: make([]byte, smallBuffer)}
	in.buf = in.small
	return in
}

func (in *input) unread() []byte { return in.buf[in.start:in.end] }

func (in *input) consume(n int) { in.start += n }

// offset is where unread begins, and between what stands between two offsets.
// Both are good until the next fill.
func (in *input) offset() int                 { return in.start }
func (in *input) between(from, to int) []byte { return in.buf[from:to] }

// expect tells how many bytes the unfinished command is known to want in all, 0
// if that is not known.
func (in *input) expect(need int) { in.need = need }

// setLimit bounds what may be unread from here on.
func (in *input) setLimit(most int64) { in.most = most }

// fill waits for more bytes. Memory follows what came, not what a client
// announced. The errors are the socket's, errWoken, errNoMemory or
// errQueryTooLong.
func (in *input) fill() error {
	if err := in.makeRoom(in.need); err != nil {
		return err
	}
	if len(in.ahead) > 0 {
		in.takeAhead()
		return nil
	}
	if in.err != nil {
		return in.err
	}
	n, err := in.from.Read(in.buf[in.end:])
	in.end += n
	in.lastRead = n
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

// hasRoomAhead tells whether n more bytes may be read ahead of their turn.
func (in *input) hasRoomAhead(n int) bool {
	return len(in.ahead)+n <= aheadLimit && in.budget.hasRoom(n)
}

// keepAhead takes what was read ahead. It cannot refuse, for the bytes are
// read; hasRoomAhead was asked before.
func (in *input) keepAhead(p []byte) {
	in.budget.use(len(p))
	in.ahead = append(in.ahead, p...)
}

// isAhead tells whether something was read ahead, and not yet taken by fill.
func (in *input) isAhead() bool { return len(in.ahead) > 0 }

// endAhead says what ended the stream. fill returns it behind what was read ahead.
func (in *input) endAhead(err error) { in.err = err }

// endedAhead tells whether endAhead was called.
func (in *input) endedAhead() bool { return in.err != nil }

func (in *input) takeAhead() {
	n := copy(in.buf[in.end:], in.ahead)
	in.end += n
	in.lastRead = n
	in.budget.release(n)
	in.ahead = in.ahead[n:]
	if len(in.ahead) == 0 {
		in.ahead = nil
	}
}

func (in *input) makeRoom(need int) error {
	if in.start == in.end {
		in.start, in.end = 0, 0
		if in.lastRead < smallBuffer {
			in.shrink()
		}
	}
	if in.start > 0 && (in.end == len(in.buf) || need > len(in.buf)-in.start) {
		in.end = copy(in.buf, in.unread())
		in.start = 0
	}
	if in.end < len(in.buf) && need <= len(in.buf) || in.end < len(in.buf)/2 {
		return nil
	}
	return in.grow(need)
}

func (in *input) grow(need int) error {
	if len(in.buf) < largeBuffer {
		in.borrowed = borrowBuffer()
		copy(in.borrowed[:], in.unread())
		in.buf, in.end, in.start = in.borrowed[:], in.end-in.start, 0
		in.from.setLargeBuffer(true)
		return nil
	}
	if int64(len(in.unread())) > in.most {
		return errQueryTooLong
	}
	size := 2 * len(in.buf)
	if need > len(in.buf) {
		size = min(size, need)
	}
	size = int(min(int64(size), max(in.most, largeBuffer)+1))
	if !in.budget.reserve(size) {
		return errNoMemory
	}
	larger := make([]byte, size)
	n := copy(larger, in.unread())
	in.giveBack()
	in.buf, in.start, in.end, in.reserved = larger, 0, n, size
	in.from.setLargeBuffer(true)
	return nil
}

// relax gives memory back while the client is silent.
func (in *input) relax() {
	if in.start == in.end {
		in.start, in.end = 0, 0
		in.shrink()
	}
}

// release gives everything back for good.
func (in *input) release() {
	in.giveBack()
	in.budget.release(len(in.ahead))
	in.buf, in.small, in.ahead, in.start, in.end = nil, nil, nil, 0, 0
}

// shrink returns to the small buffer. Only when nothing is unread.
func (in *input) shrink() {
	if len(in.buf) == smallBuffer {
		return
	}
	in.giveBack()
	in.buf = in.small
	in.from.setLargeBuffer(false)
}

func (in *input) giveBack() {
	if in.borrowed != nil {
		returnBuffer(in.borrowed)
		in.borrowed = nil
	}
	in.budget.release(in.reserved)
	in.reserved = 0
}
