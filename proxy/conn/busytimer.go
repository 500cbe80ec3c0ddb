package conn

import (
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// watchAfter is how long a session waits before its busy timer looks. Most lock
	// commands are over by then, even on a busy machine.
	watchAfter = 20 * time.Millisecond
	// sendAfter is the same for a session with replies that are ready.
	sendAfter = 2 * time.Millisecond
)

// A BusyTimer looks after the client while its session waits for the masters or the
// upstream. It sends the replies that are ready, has the loop read ahead, and notices when the client
// leaves. Between Begin and End it owns the session's pending replies.
//
// It is a timer, which has look called. Nothing stops the timer when a wait ends, so many short waits
// cost one timer.
type BusyTimer struct {
	in      *Input
	session BusySession

	mu       sync.Mutex  // held by look; guards all below
	begun    bool        // Begin was called and not End
	far      bool        // the loop reads far ahead
	told     bool        // the session knows that its client has ended
	timer    *time.Timer // nil: it does not run
	wait     uint64      // counts waits
	armedFor uint64      // the wait for which the timer was set
}

// BusySession is a session as its BusyTimer sees it. The BusyTimer calls it on a goroutine. No method may wait.
type BusySession interface {
	// Flush writes the replies that are ready.
	Flush()
	// ClientEnded is called when the client sends no more.
	ClientEnded()
	// ClientLeft is called when the client cannot be read from.
	ClientLeft()
	// Panicked is called with the value that recover returned.
	Panicked(reason any)
}

// NewBusyTimer makes the BusyTimer of a session that reads from this input. It starts nothing.
func NewBusyTimer(in *Input, session BusySession) *BusyTimer {
	return &BusyTimer{in: in, session: session}
}

// Begin is called before the session waits. ready tells whether replies are ready.
func (t *BusyTimer) Begin(ready bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = true
	t.wait++
	if ready {
		t.arm(sendAfter, true)
	} else {
		t.arm(watchAfter, false)
	}
}

// End returns once look has let go of everything, which does not take long. It may be called again.
func (t *BusyTimer) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = false
	if t.far {
		t.far = false
		t.in.readFar(false)
	}
}

// clientEnded is called on the loop. left means that the client reads no more, either. Then look
// runs at once, but not on the loop.
func (t *BusyTimer) clientEnded(left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left {
		t.arm(0, true)
	} else {
		t.arm(watchAfter, false)
	}
}

// arm has look called for the current wait, with mu held, unless the timer runs already. With sooner it is
// set again.
func (t *BusyTimer) arm(after time.Duration, sooner bool) {
	switch {
	case t.timer == nil:
		t.timer = time.AfterFunc(after, t.look)
	case !sooner:
		return
	case t.timer.Stop(): // otherwise look is about to run, for this wait
		t.timer.Reset(after)
	}
	t.armedFor = t.wait
}

// look sends the replies that are ready and tells the session that its client has ended.
func (t *BusyTimer) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		if reason := recover(); reason != nil {
			t.session.Panicked(reason)
		}
	}()
	t.timer = nil
	switch {
	case !t.begun:
		return
	case t.armedFor != t.wait: // another wait has begun meanwhile
		t.arm(watchAfter, false)
		return
	}
	t.session.Flush()
	if !t.far { // the client's end may come behind much else
		t.far = true
		t.in.readFar(true)
	}
	err := t.in.ended()
	if err == nil || t.told {
		return
	}
	t.told = true
	if errors.Is(err, io.EOF) {
		t.session.ClientEnded()
	} else {
		t.session.ClientLeft()
	}
}
