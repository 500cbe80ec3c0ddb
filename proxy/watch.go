package proxy

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/conn"
)

const (
	// watchAfter is how long a session is busy before its client is watched.
	// Most lock commands are over by then, even where many clients keep the
	// machine busy, and cost no goroutine.
	watchAfter = 20 * time.Millisecond
	// sendAfter is for a session with replies that are ready.
	sendAfter = 2 * time.Millisecond
)

// A watch looks after the client while its session waits for the masters or
// the upstream: it sends the replies that are ready, reads what comes ahead of
// its turn, and sees the client go. Between begin and end it owns the
// session's input and pending replies.
type watch struct {
	session *session
	begun   bool          // and not yet ended; only the session looks
	timer   *time.Timer   // begins run
	stop    atomic.Bool   // run is to end
	done    chan struct{} // run has ended
}

func (w *watch) begin() {
	w.begun = true
	after := watchAfter
	if len(w.session.pending) > 0 {
		after = sendAfter
	}
	if w.timer == nil {
		w.done = make(chan struct{}, 1)
		w.timer = time.AfterFunc(after, w.run)
		return
	}
	w.timer.Reset(after)
}

// end returns once the watch has let go of everything. It may be called again.
func (w *watch) end() {
	if !w.begun {
		return
	}
	w.begun = false
	if w.timer.Stop() {
		return // run was never begun
	}
	w.stop.Store(true)
	w.session.sock.Wake()
	<-w.done
	w.stop.Store(false)
	w.session.sock.ClearWake()
}

func (w *watch) run() {
	defer func() {
		if reason := recover(); reason != nil {
			w.session.panicked(reason)
		}
		w.done <- struct{}{}
	}()
	w.session.flush()
	w.readAhead()
}

func (w *watch) readAhead() {
	in := w.session.in
	if in.EndedAhead() {
		return
	}
	buf := conn.BorrowBuffer()
	defer conn.ReturnBuffer(buf)
	for in.HasRoomAhead(len(buf)) {
		n, err := w.session.sock.Read(buf[:])
		in.KeepAhead(buf[:n])
		switch {
		case errors.Is(err, conn.ErrWoken):
			w.session.sock.ClearWake()
			if w.stop.Load() {
				return
			}
		case errors.Is(err, io.EOF):
			in.EndAhead(err)
			w.session.clientEnded()
			return
		case err != nil:
			in.EndAhead(err)
			w.session.clientLeft()
			return
		}
	}
}
