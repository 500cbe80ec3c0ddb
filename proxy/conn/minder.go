package conn

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// watchAfter is how long a session waits before its minder begins. Most lock
	// commands are over by then, even on a busy machine, and cost no goroutine.
	watchAfter = 20 * time.Millisecond
	// sendAfter is the same for a session with replies that are ready.
	sendAfter = 2 * time.Millisecond
)

// A Minder looks after the client while its session waits for the masters or the
// upstream. It sends the replies that are ready, reads ahead, and notices when the client
// leaves. Between Begin and End it owns the session's input and pending replies.
type Minder struct {
	in      *Input
	session Minded
	begun   bool          // Begin was called and not End; only the session uses it
	timer   *time.Timer   // begins run; for an attached socket look, and nil unless it runs
	stop    atomic.Bool   // run is to end
	done    chan struct{} // run has ended

	looking  sync.Mutex    // for an attached socket: held by look, and guards begun and told
	told     bool          // the session knows that its client has ended
	mu       sync.Mutex    // for an attached socket: guards timer and armedFor
	armedFor uint64        // the wait for which the timer was set
	wait     atomic.Uint64 // counts waits
}

// Minded is a session as its Minder sees it. The Minder's goroutine calls it.
type Minded interface {
	// Flush writes the replies that are ready.
	Flush()
	// ClientEnded is called when the client sends no more.
	ClientEnded()
	// ClientLeft is called when the client cannot be read from.
	ClientLeft()
	// Panicked is called with the value that recover returned.
	Panicked(reason any)
}

// NewMinder makes the Minder of a session that reads from this input. It starts nothing.
func NewMinder(in *Input, session Minded) *Minder { return &Minder{in: in, session: session} }

// Begin is called before the session waits. ready tells whether replies are ready.
func (m *Minder) Begin(ready bool) {
	if m.in.from.Attached() {
		m.beginAttached(ready)
		return
	}
	m.begun = true
	after := watchAfter
	if ready {
		after = sendAfter
	}
	if m.timer == nil {
		m.done = make(chan struct{}, 1)
		m.timer = time.AfterFunc(after, m.run)
		return
	}
	m.timer.Reset(after)
}

// End returns once the minder has let go of everything. It may be called again.
func (m *Minder) End() {
	if m.in.from.Attached() {
		m.endAttached()
		return
	}
	if !m.begun {
		return
	}
	m.begun = false
	if m.timer.Stop() {
		return // run was never begun
	}
	m.stop.Store(true)
	m.in.from.Wake()
	<-m.done
	m.stop.Store(false)
	m.in.from.ClearWake()
}

func (m *Minder) run() {
	defer func() {
		if reason := recover(); reason != nil {
			m.session.Panicked(reason)
		}
		m.done <- struct{}{}
	}()
	m.session.Flush()
	m.readAhead()
}

func (m *Minder) readAhead() {
	if m.in.endedAhead() != nil {
		return
	}
	buf := BorrowBuffer()
	defer ReturnBuffer(buf)
	for m.in.hasRoomAhead(len(buf)) {
		n, err := m.in.from.Read(buf[:])
		m.in.keepAhead(buf[:n])
		switch {
		case errors.Is(err, ErrWoken):
			m.in.from.ClearWake()
			if m.stop.Load() {
				return
			}
		case errors.Is(err, io.EOF):
			m.in.endAhead(err)
			m.session.ClientEnded()
			return
		case err != nil:
			m.in.endAhead(err)
			m.session.ClientLeft()
			return
		}
	}
}
