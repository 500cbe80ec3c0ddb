package conn

import (
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// watchAfter is how long a session waits before its minder looks. Most lock
	// commands are over by then, even on a busy machine.
	watchAfter = 20 * time.Millisecond
	// sendAfter is the same for a session with replies that are ready.
	sendAfter = 2 * time.Millisecond
)

// A Minder looks after the client while its session waits for the masters or the
// upstream. It sends the replies that are ready, has the loop read ahead, and notices when the client
// leaves. Between Begin and End it owns the session's pending replies.
//
// It is a timer, which has look called. Nothing stops the timer when a wait ends, so many short waits
// cost one timer.
type Minder struct {
	in      *Input
	session Minded

	mu       sync.Mutex  // held by look; guards all below
	begun    bool        // Begin was called and not End
	minds    bool        // the loop reads far ahead
	told     bool        // the session knows that its client has ended
	timer    *time.Timer // nil: it does not run
	wait     uint64      // counts waits
	armedFor uint64      // the wait for which the timer was set
}

// Minded is a session as its Minder sees it. The Minder calls it on a goroutine. No method may wait.
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
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = true
	m.wait++
	if ready {
		m.arm(sendAfter, true)
	} else {
		m.arm(watchAfter, false)
	}
}

// End returns once look has let go of everything, which does not take long. It may be called again.
func (m *Minder) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begun = false
	if m.minds {
		m.minds = false
		m.in.setMinded(false)
	}
}

// clientEnded is called on the loop. left means that the client reads no more, either. Then look
// runs at once, but not on the loop.
func (m *Minder) clientEnded(left bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if left {
		m.arm(0, true)
	} else {
		m.arm(watchAfter, false)
	}
}

// arm has look called for the current wait, with mu held, unless the timer runs already. With sooner it is
// set again.
func (m *Minder) arm(after time.Duration, sooner bool) {
	switch {
	case m.timer == nil:
		m.timer = time.AfterFunc(after, m.look)
	case !sooner:
		return
	case m.timer.Stop(): // otherwise look is about to run, for this wait
		m.timer.Reset(after)
	}
	m.armedFor = m.wait
}

// look sends the replies that are ready and tells the session that its client has ended.
func (m *Minder) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if reason := recover(); reason != nil {
			m.session.Panicked(reason)
		}
	}()
	m.timer = nil
	switch {
	case !m.begun:
		return
	case m.armedFor != m.wait: // another wait has begun meanwhile
		m.arm(watchAfter, false)
		return
	}
	m.session.Flush()
	if !m.minds { // the client's end may come behind much else
		m.minds = true
		m.in.setMinded(true)
	}
	err := m.in.ended()
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
