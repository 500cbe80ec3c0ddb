package conn

import (
	"errors"
	"io"
	"net"
	"time"
)

// ahead is the input of an attached socket as the loop sees it. The loop reads ahead while the
// session is busy, within aheadLimit and the budget.
type ahead struct {
	*Input
	minder *Minder
}

func (a ahead) Received(p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.released {
		return
	}
	if a.filling {
		p = p[a.take(p):]
	}
	if len(p) > 0 {
		a.keepAhead(p)
		if !a.mayReadOn() {
			a.paused = true
			a.from.Pause()
		}
	}
	a.from.task.Unpark()
}

// take puts bytes into buf, as many as there is room for.
func (in *Input) take(p []byte) (n int) {
	switch {
	case len(p) <= len(in.buf)-in.end || len(in.buf) >= LargeBuffer:
	case in.buf == nil && len(p) <= SmallBuffer:
		in.pooled = smallBuffers.Get().(*[SmallBuffer]byte)
		in.buf = in.pooled[:]
	default:
		_ = in.grow(0) // to a large one; if that fails, the next Fill does
	}
	n = copy(in.buf[in.end:], p)
	in.end += n
	return n
}

func (a ahead) Ended(err error) {
	if !errors.Is(err, io.EOF) || a.endedAhead() == nil {
		a.endAhead(err)
	}
	if !errors.Is(err, net.ErrClosed) && !a.isFilling() { // the session neither caused it nor reads now
		a.minder.clientEnded(!errors.Is(err, io.EOF))
	}
}

// isFilling tells whether the session waits for input.
func (in *Input) isFilling() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.filling
}

// fillAttached is Fill for an attached socket. The loop puts what comes into buf.
func (in *Input) fillAttached() error {
	// Before filling is set, only the session uses buf. A large copy must not hold up the loop.
	if in.start == in.end {
		in.start, in.end = 0, 0
		in.shrink()
	} else if err := in.makeRoom(in.need); err != nil {
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
	case in.from.wasWoken():
		return ErrWoken
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

// dropAhead drops the first n bytes that were read ahead. If a loop reads ahead, it goes on.
func (in *Input) dropAhead(n int) {
	in.budget.Release(n)
	if in.ahead = in.ahead[n:]; len(in.ahead) == 0 {
		in.ahead = nil
	}
	in.readOn()
}

// mayReadOn tells, with mu held, whether the loop may read ahead.
func (in *Input) mayReadOn() bool {
	return in.hasRoomAhead(1) && (in.minded || len(in.ahead) < unmindedLimit)
}

// readOn has the loop read again, with mu held, if it may.
func (in *Input) readOn() {
	if in.paused && in.mayReadOn() {
		in.paused = false
		in.from.Resume()
	}
}

func (in *Input) setMinded(yes bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.minded = yes
	in.readOn()
}

// The minder of an attached socket needs no goroutine while all is well: the loop reads ahead.
// It has only a timer, until that fires. Nothing stops it when a wait ends, so many short waits cost
// one timer.

func (m *Minder) beginAttached(ready bool) {
	m.looking.Lock()
	m.begun = true
	m.looking.Unlock()
	m.in.setMinded(true)
	wait := m.wait.Add(1)
	if ready {
		m.arm(sendAfter, wait, true)
	} else {
		m.arm(watchAfter, wait, false)
	}
}

// endAttached returns once look has let go of everything.
func (m *Minder) endAttached() {
	if !m.looking.TryLock() {
		m.in.from.task.Leave() // it may be writing
		m.looking.Lock()
	}
	m.begun = false
	m.looking.Unlock()
	m.in.setMinded(false)
}

// clientEnded is called on the loop. left means that the client reads no more, either. Then look
// runs at once, but not on the loop.
func (m *Minder) clientEnded(left bool) {
	after := watchAfter
	if left {
		after = 0
	}
	m.arm(after, m.wait.Load(), left)
}

// arm has look called for a wait, unless the timer runs already. With sooner it is set again.
func (m *Minder) arm(after time.Duration, wait uint64, sooner bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.timer == nil:
		m.timer = time.AfterFunc(after, m.look)
	case sooner && m.timer.Stop(): // otherwise look is about to run, for this wait
		m.timer.Reset(after)
	case sooner:
	default:
		return
	}
	m.armedFor = wait
}

// look sends the replies that are ready and tells the session that its client has ended.
func (m *Minder) look() {
	m.mu.Lock()
	m.timer = nil
	wait := m.armedFor
	m.mu.Unlock()
	m.looking.Lock()
	defer m.looking.Unlock()
	defer func() {
		if reason := recover(); reason != nil {
			m.session.Panicked(reason)
		}
	}()
	if !m.begun {
		return
	}
	if now := m.wait.Load(); now != wait { // another wait has begun meanwhile
		m.arm(watchAfter, now, false)
		return
	}
	m.session.Flush()
	err := m.in.endedAhead()
	if err == nil || m.told {
		return
	}
	m.told = true
	if errors.Is(err, io.EOF) {
		m.session.ClientEnded()
	} else {
		m.session.ClientLeft()
	}
}
