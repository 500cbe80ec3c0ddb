package proxy

import (
	"errors"
	"slices"
	"time"

	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
)

// tailSize is enough for the integer that ends a confirmation.
const tailSize = 24

func (u *upstream) copyReplies() {
	defer u.onEnd()
	defer close(u.done)
	defer func() { _ = u.conn.Close() }()
	defer func() {
		if u.holds {
			u.client.Unlock()
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
	small := make([]byte, conn.SmallBuffer)
	buf := small
	var borrowed *[conn.LargeBuffer]byte
	shrink := func() {
		if borrowed != nil {
			conn.ReturnBuffer(borrowed)
			borrowed, buf = nil, small
			u.conn.SetLargeBuffer(false)
		}
	}
	defer shrink()
	kept := 0 // bytes that do not yet tell what they begin
	for {
		n, err := u.conn.Read(buf[kept:])
		if n > 0 {
			used, ok := u.deliver(buf[:kept+n])
			switch {
			case !ok:
				u.onLost()
				return
			case u.broken != nil:
				u.onBroken(u.broken)
				return
			}
			kept = copy(buf, buf[used:kept+n])
			if u.finishing.Load() {
				u.conn.ReadUntil(time.Now().Add(lastWords))
			}
		}
		switch {
		case err != nil && errors.Is(err, conn.ErrWoken):
			u.conn.ClearWake()
			if kept == 0 {
				shrink()
			}
		case err != nil:
			_ = u.pass(buf[:kept])
			return
		case n+kept >= len(buf) && borrowed == nil:
			borrowed = conn.BorrowBuffer()
			copy(borrowed[:], buf[:kept])
			buf = borrowed[:]
			u.conn.SetLargeBuffer(true)
		case n < conn.SmallBuffer && kept == 0:
			shrink()
		}
	}
}

// deliver passes on p, the next bytes from the upstream, all but those at its
// end that do not yet tell what they begin. ok is false when the client takes
// no more.
func (u *upstream) deliver(p []byte) (used int, ok bool) {
	from, at := 0, 0 // p[from:at] is for the client and not yet written
	for at < len(p) {
		if !u.inside {
			if !u.beginPlain(p[at]) {
				to, enough := u.owed.begin(p[at:])
				if !enough {
					break
				}
				if to == fateUnasked {
					u.broken = errUnasked
					break
				}
				if to != fateClient && from < at {
					if !u.pass(p[from:at]) {
						return at, false
					}
					from = at
				}
				u.to = to
			}
			u.inside, u.partly = true, false
			u.tail = u.tail[:0]
		}
		n, done, err := u.scanner.Scan(p[at:])
		if err != nil {
			u.broken = err
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
	rest := p[from:at]
	if u.broken != nil && u.inside && !u.partly && u.to == fateClient {
		// In the place of the reply, as far as it is not begun.
		u.inside = false
		rest = append(slices.Clip(rest), wire.ErrUpstreamReply...)
	}
	u.partly = u.inside
	if !u.pass(rest) {
		return at, false
	}
	u.owed.delivered(u.answered)
	u.answered = 0
	return at, true
}

// errUnasked: replies and commands are out of step, so that the next reply
// would be taken for the answer to a later command.
var errUnasked = errors.New("a reply that nobody asked for")

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

// pass hands bytes to the client and keeps its writing side for as long as
// the value they belong to goes on.
func (u *upstream) pass(p []byte) bool {
	if len(p)+len(u.told) > 0 && !u.holds {
		u.client.Lock()
		u.holds = true
	}
	var err error
	if len(p) > 0 {
		_, err = u.client.Write(p)
	}
	if len(u.told) > 0 {
		for _, told := range u.told {
			u.onTold(told)
		}
		u.told = u.told[:0]
	}
	if u.holds && (!u.inside || u.to != fateClient) {
		u.holds = false
		u.client.Unlock()
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
	length := len(u.captured) + len(value)
	if u.overflow || int64(length) > u.captures {
		u.overflow = true
		return
	}
	if length > conn.LargeBuffer && u.memory != nil {
		if !u.memory.Reserve(len(value)) {
			u.overflow = true
			return
		}
		u.charged += len(value)
	}
	u.captured = append(u.captured, value...)
}
