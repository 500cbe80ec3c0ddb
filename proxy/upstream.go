package proxy

import (
	"errors"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock"
)

// lastWords is how long an upstream that was told that nothing more comes may
// stay silent before it is left.
const lastWords = 10 * time.Second

// tailSize is enough for the integer that ends a confirmation.
const tailSize = 24

// An upstream is one session's own connection to the ordinary Redis, from the
// first byte after the login on. The session writes to it; the copier, its one
// goroutine, reads replies and copies them to the client as they come, however
// long they are, counting top-level values on the way. The session that opened
// it calls finish, which waits for the copier.
type upstream struct {
	conn     *socket
	client   *output
	owed     *owed
	onEnd    func()             // called once when the copier has delivered the last byte
	onLost   func()             // called when the client no longer takes replies
	onPanic  func(any)          // called in a recover
	captures int64              // longest value kept for the session, in bytes
	onTold   func(confirmation) // called with the client's writing side taken, once the client has it in writing; may be nil

	// The copier's own.
	scanner  redlock.Scanner
	blind    bool // the scanner lost its step: everything is copied, nothing counted
	plain    int  // values to come that are ordinary replies, so far as asked
	answered int  // of those, not yet reported
	counted  bool // the present value is one of them
	inside   bool // a value has begun and not ended
	to       fate
	holds    bool // the copier has taken the client's writing side
	tail     []byte
	captured []byte
	overflow bool
	told     []confirmation // ended, and not yet written

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
	if cap(u.captured) > largeBuffer {
		u.captured = nil
	}
	return value, ok
}

// finish tells the upstream that nothing more comes, as the client's own end
// would have, lets it say what it still has to say, and closes. An upstream
// left open in BLPOP would swallow an element. It reports whether the last
// value was whole.
func (u *upstream) finish() (whole bool) {
	u.finishing.Store(true)
	u.conn.readUntil(time.Now().Add(lastWords))
	u.conn.closeWrite()
	<-u.done
	return !u.inside
}

func (u *upstream) copyReplies() {
	defer u.onEnd()
	defer close(u.done)
	defer func() { _ = u.conn.Close() }()
	defer func() {
		if u.holds {
			u.client.give()
		}
	}()
	defer func() {
		if reason := recover(); reason != nil {
			u.onPanic(reason)
		}
	}()
	u.copyUntilEnd()
}

func (u *upstream) copyUntilEnd() {
	small := make([]byte, smallBuffer)
	buf := small
	var borrowed *[largeBuffer]byte
	shrink := func() {
		if borrowed != nil {
			largeBuffers.Put(borrowed)
			borrowed, buf = nil, small
			u.conn.swollen.Store(false)
		}
	}
	defer shrink()
	kept := 0 // bytes that do not yet tell what they begin
	for {
		n, err := u.conn.Read(buf[kept:])
		if n > 0 {
			used, ok := u.deliver(buf[:kept+n])
			if !ok {
				u.onLost()
				return
			}
			kept = copy(buf, buf[used:kept+n])
			if u.finishing.Load() {
				u.conn.readUntil(time.Now().Add(lastWords))
			}
		}
		switch {
		case errors.Is(err, errWoken):
			u.conn.calm()
			if kept == 0 {
				shrink()
			}
		case err != nil:
			_ = u.write(buf[:kept])
			return
		case n+kept >= len(buf) && borrowed == nil:
			borrowed = largeBuffers.Get().(*[largeBuffer]byte)
			copy(borrowed[:], buf[:kept])
			buf = borrowed[:]
			u.conn.swollen.Store(true)
		case n < smallBuffer && kept == 0:
			shrink()
		}
	}
}

// deliver passes on p, the next bytes from the upstream, all but those at its
// end that do not yet tell what they begin. ok is false when the client takes
// no more.
func (u *upstream) deliver(p []byte) (used int, ok bool) {
	from, at := 0, 0 // p[from:at] is for the client and not yet written
	for at < len(p) && !u.blind {
		if !u.inside {
			if !u.beginPlain(p[at]) {
				to, enough := u.owed.begin(p[at:])
				if !enough {
					break
				}
				if to != fateClient && from < at {
					if !u.write(p[from:at]) {
						return at, false
					}
					from = at
				}
				u.to = to
			}
			u.inside = true
			u.tail = u.tail[:0]
		}
		n, done, err := u.scanner.Scan(p[at:])
		if err != nil {
			u.blind = true
			u.owed.becomePipe()
			break
		}
		value := p[at : at+n]
		at += n
		if u.counted {
			if done {
				u.inside = false
				u.answered++
			}
			continue
		}
		u.keepTail(value)
		if u.to == fateSession {
			u.capture(value)
		}
		if u.to != fateClient {
			from = at
		}
		if done {
			u.inside = false
			if told, tells := u.owed.end(u.scanner.Kind(), u.tail); tells && u.onTold != nil {
				u.told = append(u.told, told)
			}
		}
	}
	u.reportAnswered()
	if u.blind {
		at, u.inside = len(p), false
	}
	if !u.write(p[from:at]) {
		return at, false
	}
	u.owed.delivered()
	return at, true
}

// beginPlain begins a value that is known to be an ordinary reply.
func (u *upstream) beginPlain(first byte) bool {
	u.counted = false
	if u.plain == 0 {
		u.reportAnswered()
		u.plain = u.owed.plain()
	}
	if u.plain == 0 || first == '>' {
		u.reportAnswered()
		return false
	}
	u.plain--
	u.counted, u.to = true, fateClient
	return true
}

func (u *upstream) reportAnswered() {
	if u.answered > 0 {
		u.owed.answered(u.answered)
		u.answered = 0
	}
}

// write hands bytes to the client and keeps its writing side for as long as
// the value they belong to goes on.
func (u *upstream) write(p []byte) bool {
	if len(p)+len(u.told) > 0 && !u.holds {
		u.client.take()
		u.holds = true
	}
	var err error
	if len(p) > 0 {
		_, err = u.client.to.Write(p)
	}
	if len(u.told) > 0 {
		for _, told := range u.told {
			u.onTold(told)
		}
		u.told = u.told[:0]
	}
	if u.holds && (!u.inside || u.to != fateClient) {
		u.holds = false
		u.client.give()
	}
	return err == nil
}

func (u *upstream) keepTail(value []byte) {
	if len(value) >= tailSize {
		u.tail = append(u.tail[:0], value[len(value)-tailSize:]...)
		return
	}
	if over := len(u.tail) + len(value) - tailSize; over > 0 {
		u.tail = u.tail[:copy(u.tail, u.tail[over:])]
	}
	u.tail = append(u.tail, value...)
}

func (u *upstream) capture(value []byte) {
	if int64(len(u.captured)+len(value)) > u.captures {
		u.overflow = true
		return
	}
	u.captured = append(u.captured, value...)
}
