package session

import (
	"errors"
	"io"
	"net"
	"sync"

	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// errNothing means that nothing has come yet. The session's task is unparked when something
// does. errNoMemory means that the buffers of all sessions together would exceed the
// configured memory. errQueryTooLong means that one session's unfinished command would
// exceed its own limit.
var (
	errNothing      = errors.New("nothing has come yet")
	errNoMemory     = errors.New("memory for unfinished commands is used up")
	errQueryTooLong = errors.New("an unfinished command is too long")
)

// aheadLimit bounds the bytes read ahead for a busy session. If a client sends more and
// then leaves, nobody notices before the session reads again.
const aheadLimit = 1 << 20

// aheadAtFirst is the bound before the busy timer looks: most waits are over by then.
const aheadAtFirst = 32 << 10

// An input holds the bytes that a client sent and the session has not consumed. It is the receiver of the
// client's socket: the loop puts what comes into buf while the session waits for input, and otherwise
// ahead. Slices of unread stay valid until the next fill. It belongs to the session's task, but the loop
// calls Received and Ended.
type input struct {
	budget  *Budget
	decoder wire.Decoder // of the unread bytes
	most    int64        // bytes that may be unread

	from *loop.Socket // nil until begin
	task *loop.Task
	busy *busyTimer

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
	filling  bool       // from a fill until endFill; what comes belongs into buf
	paused   bool       // the loop does not read
	released bool       // release was called
	far      bool       // the loop reads far ahead
}

// begin has the loop read the socket.
func (in *input) begin(from *loop.Socket, task *loop.Task) {
	in.from, in.task = from, task
	from.Resume()
}

// unread is the bytes that were read and not consumed.
func (in *input) unread() []byte { return in.buf[in.start:in.end] }

// consume drops the first n unread bytes. need is the least length of the rest once its command is complete, or 0.
func (in *input) consume(n, need int) {
	in.start += n
	in.consumed += int64(n)
	in.need = need
}

// filled is the number of bytes that fill has ever returned.
func (in *input) filled() int64 { return in.consumed + int64(len(in.unread())) }

// arrived is the number of bytes that have come, also of those that were read ahead.
func (in *input) arrived() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.filled() + int64(len(in.ahead))
}

// isLarge tells whether the unfinished command is so large that making room for it takes long.
func (in *input) isLarge() bool { return max(in.need, len(in.unread())) > 8*LargeBuffer }

// fill makes more bytes unread. Memory grows with the bytes that came, not with the length that a client
// announced. If nothing has come, it returns errNothing, and the caller calls endFill before it uses the
// input again. Other errors are the connection's, errNoMemory or errQueryTooLong.
func (in *input) fill() error {
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
			return errNoMemory
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
	return errNothing
}

// endFill ends a fill that returned errNothing. Bytes that came since are unread.
func (in *input) endFill() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.filling = false
}

// isFilling tells whether the session waits for the client. Any goroutine may call it.
func (in *input) isFilling() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.filling
}

// Received is called by the loop.
func (in *input) Received(p []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.released {
		return
	}
	if in.filling {
		if p = p[in.take(p):]; len(p) == 0 && in.end-in.start < in.need && in.end < len(in.buf) {
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
	in.task.Unpark()
}

// Ended is called by the loop.
func (in *input) Ended(err error) {
	in.mu.Lock()
	if !errors.Is(err, io.EOF) || in.err == nil {
		in.err = err
	}
	busy := !in.filling
	in.mu.Unlock()
	in.task.Unpark()
	if busy && !errors.Is(err, net.ErrClosed) { // the session neither caused it nor reads now
		in.busy.clientEnded(!errors.Is(err, io.EOF))
	}
}

// ended is the end of the stream, or nil.
func (in *input) ended() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err
}

// take puts bytes into buf, as many as there is room for.
func (in *input) take(p []byte) (n int) {
	switch {
	case len(p) <= len(in.buf)-in.end || len(in.buf) >= LargeBuffer:
	case in.buf == nil && len(p) <= SmallBuffer:
		in.borrowed = borrow(SmallBuffer)
		in.buf = in.borrowed.bytes
	default:
		_ = in.grow() // to a large one; if that fails, the next fill does
	}
	n = copy(in.buf[in.end:], p)
	in.end += n
	return n
}

// dropAhead drops the first n bytes that were read ahead.
func (in *input) dropAhead(n int) {
	in.budget.Release(n)
	if in.ahead = in.ahead[n:]; len(in.ahead) == 0 {
		in.ahead = nil
	}
	in.readOn()
}

// mayReadOn tells, with mu held, whether the loop may read ahead.
func (in *input) mayReadOn() bool {
	most := aheadAtFirst
	if in.far {
		most = aheadLimit
	}
	return len(in.ahead) < most && in.budget.HasRoom(1)
}

// readOn has the loop read again, with mu held, if it may.
func (in *input) readOn() {
	if in.paused && in.mayReadOn() {
		in.paused = false
		in.from.Resume()
	}
}

func (in *input) readFar(yes bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.far = yes
	in.readOn()
}

// makeRoom makes room behind the unread bytes.
func (in *input) makeRoom() error {
	if in.start > 0 && (in.end == len(in.buf) || in.need > len(in.buf)-in.start) {
		in.end = copy(in.buf, in.unread())
		in.start = 0
	}
	if in.end < len(in.buf) && in.need <= len(in.buf) || in.end < len(in.buf)/2 {
		return nil
	}
	return in.grow()
}

func (in *input) grow() error {
	if len(in.buf) < LargeBuffer {
		if !in.trusted && !in.budget.HasRoom(LargeBuffer) {
			return errNoMemory
		}
		in.budget.Use(LargeBuffer)
		in.replace(borrow(LargeBuffer))
		return nil
	}
	if int64(len(in.unread())) > in.most {
		return errQueryTooLong
	}
	size := 2 * len(in.buf)
	if in.need > len(in.buf) {
		size = min(4*size, in.need) // each step copies what has come
	}
	size = roundUp(int(min(int64(size), max(in.most, LargeBuffer)+1)))
	if !in.budget.Reserve(size) {
		return errNoMemory
	}
	in.replace(borrow(size))
	return nil
}

// replace moves the unread bytes to a larger buffer.
func (in *input) replace(larger *buffer) {
	n := copy(larger.bytes, in.unread())
	in.giveBack()
	most := min(int64(len(larger.bytes)), max(in.most, LargeBuffer)+1) // its size was rounded up
	in.borrowed, in.buf, in.end, in.reserved = larger, larger.bytes[:most], n, len(larger.bytes)
}

// release gives all memory back. The input must not be used afterwards.
func (in *input) release() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.giveBack()
	in.budget.Release(len(in.ahead))
	in.ahead = nil
	in.released = true
}

// giveBack gives the buffer back. What is unread is lost.
func (in *input) giveBack() {
	if in.borrowed == nil {
		return
	}
	in.decoder.ForgetArgs()
	in.borrowed.giveBack()
	if in.reserved > 0 {
		in.budget.Release(in.reserved)
	}
	in.buf, in.start, in.end, in.borrowed, in.reserved = nil, 0, 0, nil, 0
}
