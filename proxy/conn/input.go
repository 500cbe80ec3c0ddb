package conn

import (
	"errors"
	"io"
	"net"
	"sync"
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

// aheadAtFirst is the bound before the busy timer looks: most waits are over by then.
const aheadAtFirst = 32 << 10

// An Input holds the bytes that a client sent and the session has not consumed. It is the Reader of the
// client's socket: the loop puts what comes into buf while the session waits for input, and otherwise
// ahead. Slices of Unread stay valid until the next Fill.
type Input struct {
	budget *Budget
	most   int64 // bytes that may be unread

	from *Socket // nil until Begin
	busy *BusyTimer

	buf      []byte  // nil: nothing is unread
	start    int     // buf[start:end] is unread
	end      int     // also guarded by mu while filling
	borrowed *buffer // of buf
	reserved int     // bytes of the budget that a large buf takes
	trusted  bool    // the usual large buffer is never refused
	consumed int64   // bytes ever consumed
	need     int     // length of the unfinished command in bytes; 0 if unknown

	mu       sync.Mutex // guards all below, and buf while filling
	ahead    []byte     // came while the session was busy
	err      error      // the end of the stream
	filling  bool       // from a Fill until EndFill; what comes belongs into buf
	paused   bool       // the loop does not read
	released bool       // Release was called
	far      bool       // the loop reads far ahead
}

// NewInput makes an empty input of a client that has not logged in. Its large buffers count against
// the budget. It is given to Adopt.
func NewInput(budget *Budget) *Input { return &Input{budget: budget} }

// Begin has the loop read the socket. The busy timer looks after the client.
func (in *Input) Begin(from *Socket, busy *BusyTimer) {
	in.from, in.busy = from, busy
	from.Resume()
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

// Expect sets the whole length of the unfinished command in bytes, or 0 if unknown.
func (in *Input) Expect(need int) { in.need = need }

// SetLimit bounds the unread bytes from now on.
func (in *Input) SetLimit(most int64) { in.most = most }

// SetTrusted says whether the client has logged in. Others get no large buffer beyond the budget.
func (in *Input) SetTrusted(yes bool) { in.trusted = yes }

// IsLarge tells whether the unfinished command is so large that making room for it takes long.
func (in *Input) IsLarge() bool { return max(in.need, len(in.Unread())) > 8*LargeBuffer }

// Fill makes more bytes unread. Memory grows with the bytes that came, not with the length that a client
// announced. If nothing has come, it returns ErrNothing, and the caller calls EndFill before it uses the
// input again. Other errors are the connection's, ErrNoMemory or ErrQueryTooLong.
func (in *Input) Fill() error {
	// Before filling is set, only the session uses buf. A large copy must not hold up the loop.
	if in.start == in.end {
		in.giveBack()
	} else if err := in.makeRoom(); err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case len(in.ahead) > 0:
		n := in.take(in.ahead)
		if n == 0 {
			return ErrNoMemory
		}
		in.dropAhead(n)
		return nil
	case in.err != nil:
		return in.err
	}
	if in.paused { // there was no room to read ahead, but there is room in buf
		in.paused = false
		in.from.Resume()
	}
	in.filling = true
	return ErrNothing
}

// EndFill ends a Fill that returned ErrNothing. Bytes that came since are unread.
func (in *Input) EndFill() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.filling = false
}

// Received is called by the loop.
func (in *Input) Received(p []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.released {
		return
	}
	if in.filling {
		if p = p[in.take(p):]; len(p) == 0 && len(in.Unread()) < in.need && in.end < len(in.buf) {
			return // the session could do nothing yet
		}
	}
	if len(p) > 0 {
		in.budget.Use(len(p)) // they have been read, so they cannot be refused
		in.ahead = append(in.ahead, p...)
		if !in.mayReadOn() {
			in.paused = true
			in.from.Pause()
		}
	}
	in.from.Unpark()
}

// Ended is called by the loop.
func (in *Input) Ended(err error) {
	in.mu.Lock()
	if !errors.Is(err, io.EOF) || in.err == nil {
		in.err = err
	}
	busy := !in.filling
	in.mu.Unlock()
	if busy && !errors.Is(err, net.ErrClosed) { // the session neither caused it nor reads now
		in.busy.clientEnded(!errors.Is(err, io.EOF))
	}
}

// ended is the end of the stream, or nil.
func (in *Input) ended() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err
}

// take puts bytes into buf, as many as there is room for.
func (in *Input) take(p []byte) (n int) {
	switch {
	case len(p) <= len(in.buf)-in.end || len(in.buf) >= LargeBuffer:
	case in.buf == nil && len(p) <= SmallBuffer:
		in.borrowed = borrow(SmallBuffer)
		in.buf = in.borrowed.bytes
	default:
		_ = in.grow() // to a large one; if that fails, the next Fill does
	}
	n = copy(in.buf[in.end:], p)
	in.end += n
	return n
}

// dropAhead drops the first n bytes that were read ahead.
func (in *Input) dropAhead(n int) {
	in.budget.Release(n)
	if in.ahead = in.ahead[n:]; len(in.ahead) == 0 {
		in.ahead = nil
	}
	in.readOn()
}

// mayReadOn tells, with mu held, whether the loop may read ahead.
func (in *Input) mayReadOn() bool {
	most := aheadAtFirst
	if in.far {
		most = aheadLimit
	}
	return len(in.ahead) < most && in.budget.HasRoom(1)
}

// readOn has the loop read again, with mu held, if it may.
func (in *Input) readOn() {
	if in.paused && in.mayReadOn() {
		in.paused = false
		in.from.Resume()
	}
}

func (in *Input) readFar(yes bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.far = yes
	in.readOn()
}

// makeRoom makes room behind the unread bytes.
func (in *Input) makeRoom() error {
	if in.start > 0 && (in.end == len(in.buf) || in.need > len(in.buf)-in.start) {
		in.end = copy(in.buf, in.Unread())
		in.start = 0
	}
	if in.end < len(in.buf) && in.need <= len(in.buf) || in.end < len(in.buf)/2 {
		return nil
	}
	return in.grow()
}

func (in *Input) grow() error {
	if len(in.buf) < LargeBuffer {
		if !in.trusted && !in.budget.HasRoom(LargeBuffer) {
			return ErrNoMemory
		}
		in.budget.Use(LargeBuffer)
		in.replace(borrow(LargeBuffer))
		return nil
	}
	if int64(len(in.Unread())) > in.most {
		return ErrQueryTooLong
	}
	size := 2 * len(in.buf)
	if in.need > len(in.buf) {
		size = min(4*size, in.need) // each step copies what has come
	}
	size = roundUp(int(min(int64(size), max(in.most, LargeBuffer)+1)))
	if !in.budget.Reserve(size) {
		return ErrNoMemory
	}
	in.replace(borrow(size))
	return nil
}

// replace moves the unread bytes to a larger buffer.
func (in *Input) replace(larger *buffer) {
	n := copy(larger.bytes, in.Unread())
	in.giveBack()
	most := min(int64(len(larger.bytes)), max(in.most, LargeBuffer)+1) // its size was rounded up
	in.borrowed, in.buf, in.end, in.reserved = larger, larger.bytes[:most], n, len(larger.bytes)
}

// Release gives all memory back. The input must not be used afterwards.
func (in *Input) Release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.giveBack()
	in.budget.Release(len(in.ahead))
	in.ahead = nil
	in.released = true
}

// giveBack gives the buffer back. What is unread is lost.
func (in *Input) giveBack() {
	in.borrowed.giveBack()
	in.budget.Release(in.reserved)
	in.buf, in.start, in.end, in.borrowed, in.reserved = nil, 0, 0, nil, 0
}
