package proxy

import (
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// lastWords is how long an upstream that was told that nothing more comes may
// stay silent before it is left.
const lastWords = 10 * time.Second

// An upstream is one session's own connection to the ordinary Redis, from the
// first byte after the login on. The session writes to it; the copier, its one
// goroutine, reads replies and copies them to the client as they come, however
// long they are, counting top-level values on the way. The session that opened
// it calls finish, which waits for the copier.
type upstream struct {
	conn     *conn.Socket
	client   *conn.Writer
	owed     *owed
	onEnd    func()                  // called once when the copier has delivered the last byte
	onLost   func()                  // called when the client no longer takes replies
	onBroken func(error)             // called when what came cannot be what was asked for
	onPanic  func(any)               // called in a recover
	captures int64                   // longest value kept for the session, in bytes
	memory   *conn.Budget            // what long ones take; nil: they are not counted
	onTold   func(wire.Confirmation) // called with the client's writing side taken, once the client has it in writing; may be nil

	// The copier's own.
	scanner  resp.Scanner
	broken   error // why nothing more may be delivered
	plain    int   // values to come that are ordinary replies, so far as asked
	answered int   // of those, not yet reported
	counted  bool  // the present value is one of them
	inside   bool  // a value has begun and not ended
	partly   bool  // and a part of it was passed on
	to       fate
	holds    bool // the copier has taken the client's writing side
	tail     []byte
	captured []byte
	charged  int // what captured takes of memory
	overflow bool
	told     []wire.Confirmation // ended, and not yet written

	finishing atomic.Bool
	done      chan struct{}
}

// start begins copying.
func (u *upstream) start() {
	u.done = make(chan struct{})
	go u.copyReplies()
}

// ended tells that no more will come and all that came was delivered.
func (u *upstream) ended() bool {
	select {
	case <-u.done:
		return true
	default:
		return false
	}
}

// wait returns once nothing is owed, or reports false when the connection
// ended before.
func (u *upstream) wait() bool {
	if u.owed.settled(true) {
		return true
	}
	select {
	case <-u.owed.settledNow:
		return true
	case <-u.done:
		return u.owed.settled(false)
	}
}

// takeCapture hands over what was kept for the session. Only while nothing is
// owed; the bytes are good until the next capture. ok is false when the value
// was too long.
func (u *upstream) takeCapture() (value []byte, ok bool) {
	value, ok = u.captured, !u.overflow
	u.captured, u.overflow = u.captured[:0], false
	if cap(u.captured) > conn.LargeBuffer {
		u.captured = nil
	}
	u.giveBack()
	return value, ok
}

// giveBack gives back what a capture took of memory. The copier has ended, or
// nothing is owed.
func (u *upstream) giveBack() {
	if u.memory != nil {
		u.memory.Release(u.charged)
	}
	u.charged = 0
}

// write gives the upstream commands. A failed write needs no care: the copier
// meets the end of the connection, after what the upstream said before it.
func (u *upstream) write(p []byte) {
	_, _ = u.conn.Write(p)
}

// finish tells the upstream that nothing more comes, as the client's own end
// would have, lets it say what it still has to say, and closes. An upstream
// left open in BLPOP would swallow an element. It reports whether the last
// value was whole.
func (u *upstream) finish() (whole bool) {
	u.lastWords()
	u.conn.CloseWrite()
	<-u.done
	return !u.inside
}

// lastWords has the upstream left once it has been silent for lastWords: nobody
// will send anything more, or nobody hears it. It may be called at any time.
func (u *upstream) lastWords() {
	u.finishing.Store(true)
	u.conn.ReadUntil(time.Now().Add(lastWords))
}
