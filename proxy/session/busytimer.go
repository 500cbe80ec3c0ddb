package session

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

// A busyTimer looks after the client while its session waits for the masters or the
// upstream. It sends the replies that are ready, has the loop read ahead, and notices when the client
// leaves. Between begin and end it owns the session's pending replies.
//
// It is a timer, which has look called. Nothing stops the timer when a wait ends, so many short waits
// cost one timer.
type busyTimer struct {
	session *Session

	mu       sync.Mutex  // held by look; guards all below
	begun    bool        // begin was called and not end
	far      bool        // the loop reads far ahead
	told     bool        // the session knows that its client has ended
	timer    *time.Timer // nil: it does not run
	wait     uint64      // counts waits
	armedFor uint64      // the wait for which the timer was set
}

// begin is called before the session waits. ready tells whether replies are ready.
func (t *busyTimer) begin(ready bool) {
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

// end returns once look has let go of everything, which does not take long. It may be called again.
func (t *busyTimer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = false
	if t.far {
		t.far = false
		t.session.in.readFar(false)
	}
}

// clientEnded is called on the loop. left means that the client reads no more, either. Then look
// runs at once, but not on the loop.
func (t *busyTimer) clientEnded(left bool) {
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
func (t *busyTimer) arm(after time.Duration, sooner bool) {
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
func (t *busyTimer) look() {
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
	t.session.flushWhileBusy()
	if !t.far { // the client's end may come behind much else
		t.far = true
		t.session.in.readFar(true)
	}
	err := t.session.in.ended()
	if err == nil || t.told {
		return
	}
	t.told = true
	if errors.Is(err, io.EOF) {
		t.session.clientEnded()
	} else {
		t.session.clientLeft()
	}
}
