package conn

import "errors"

// ErrNoMemory means that what is buffered for all sessions together would take
// more memory than the configuration allows, ErrQueryTooLong that one session's
// unfinished command would.
var (
	ErrNoMemory     = errors.New("memory for unfinished commands is used up")
	ErrQueryTooLong = errors.New("an unfinished command is too long")
)

// aheadLimit bounds what is read ahead for a busy session. A client that sends
// more is not seen leaving until the session reads again.
const aheadLimit = 1 << 20

// An Input holds what a client sent and the session has not yet done. Slices
// of Unread stay valid until the next Fill.
type Input struct {
	from   *Socket
	budget *Budget
	most   int64 // bytes that may be unread

	buf      []byte
	start    int // buf[start:end] is unread
	end      int
	small    []byte
	borrowed *[LargeBuffer]byte // buf's array while it is one of the pool
	reserved int                // what buf, larger still, takes of the budget
	lastRead int
	need     int // bytes that the unfinished command is known to want in all, 0 if unknown

	ahead []byte // read while the session was busy
	err   error  // what ended the stream, once that was met ahead
}

// NewInput makes an empty input. Large buffers are taken from the budget.
func NewInput(from *Socket, budget *Budget) *Input {
	in := &Input{from: from, budget: budget, small: make([]byte, SmallBuffer)}
	in.buf = in.small
	return in
}

// Unread is what has come and was not consumed.
func (in *Input) Unread() []byte { return in.buf[in.start:in.end] }

// Consume takes the first n bytes off what is unread.
func (in *Input) Consume(n int) { in.start += n }

// Offset is where Unread begins. It is good until the next Fill.
func (in *Input) Offset() int { return in.start }

// Between is what stands between two offsets.
func (in *Input) Between(from, to int) []byte { return in.buf[from:to] }

// Expect tells how many bytes the unfinished command is known to want in all, 0
// if that is not known.
func (in *Input) Expect(need int) { in.need = need }

// SetLimit bounds what may be unread from here on.
func (in *Input) SetLimit(most int64) { in.most = most }

// Fill waits for more bytes. Memory follows what came, not what a client
// announced. The errors are the socket's, ErrWoken, ErrNoMemory or
// ErrQueryTooLong.
func (in *Input) Fill() error {
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

// HasRoomAhead tells whether n more bytes may be read ahead of their turn.
func (in *Input) HasRoomAhead(n int) bool {
	return len(in.ahead)+n <= aheadLimit && in.budget.HasRoom(n)
}

// KeepAhead takes what was read ahead. It cannot refuse, for the bytes are
// read; HasRoomAhead was asked before.
func (in *Input) KeepAhead(p []byte) {
	in.budget.Use(len(p))
	in.ahead = append(in.ahead, p...)
}

// IsAhead tells whether something was read ahead, and not yet taken by Fill.
func (in *Input) IsAhead() bool { return len(in.ahead) > 0 }

// EndAhead says what ended the stream. Fill returns it behind what was read ahead.
func (in *Input) EndAhead(err error) { in.err = err }

// EndedAhead tells whether EndAhead was called.
func (in *Input) EndedAhead() bool { return in.err != nil }

func (in *Input) takeAhead() {
	n := copy(in.buf[in.end:], in.ahead)
	in.end += n
	in.lastRead = n
	in.budget.Release(n)
	in.ahead = in.ahead[n:]
	if len(in.ahead) == 0 {
		in.ahead = nil
	}
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
		in.borrowed = BorrowBuffer()
		copy(in.borrowed[:], in.Unread())
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

// Release gives everything back for good.
func (in *Input) Release() {
	in.giveBack()
	in.budget.Release(len(in.ahead))
	in.buf, in.small, in.ahead, in.start, in.end = nil, nil, nil, 0, 0
}

// shrink returns to the small buffer. Only when nothing is unread.
func (in *Input) shrink() {
	if len(in.buf) == SmallBuffer {
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
	in.budget.Release(in.reserved)
	in.reserved = 0
}
