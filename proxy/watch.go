package proxy

import (
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// watchAfter is how long a session is busy before its client is watched.
	// Most lock commands are over by then and cost no goroutine.
	watchAfter = 2 * time.Millisecond
	// aheadLimit bounds what is read ahead for a busy session. A client that
	// sends more is not seen leaving until the session reads again.
	aheadLimit = 1 << 20
)

// A watch looks after the client while its session waits for the masters or
// the upstream: it sends the replies that are ready, reads what comes ahead of
// its turn, and sees the client go. Between begin and end it owns the
// session's input and pending replies.
type watch struct {
	session *session
	timer   *time.Timer
	done    chan struct{}

	mu    sync.Mutex
	state watchState
	stop  bool
}

type watchState uint8

const (
	watchIdle watchState = iota
	watchArmed
	watchRunning
)

func (w *watch) begin() {
	w.mu.Lock()
	w.state = watchArmed
	w.mu.Unlock()
	if w.timer == nil {
		w.done = make(chan struct{}, 1)
		w.timer = time.AfterFunc(watchAfter, w.run)
		return
	}
	w.timer.Reset(watchAfter)
}

// end returns once the watch has let go of everything. It may be called again.
func (w *watch) end() {
	if w.timer == nil {
		return
	}
	w.timer.Stop()
	w.mu.Lock()
	running := w.state == watchRunning
	if running {
		w.stop = true
	} else {
		w.state = watchIdle
	}
	w.mu.Unlock()
	if running {
		w.session.sock.wake()
		<-w.done
		w.session.sock.calm()
	}
}

func (w *watch) run() {
	w.mu.Lock()
	if w.state != watchArmed {
		w.mu.Unlock()
		return
	}
	w.state = watchRunning
	w.mu.Unlock()
	defer func() {
		if reason := recover(); reason != nil {
			w.session.panicked(reason)
		}
		w.mu.Lock()
		awaited := w.stop
		w.state, w.stop = watchIdle, false
		w.mu.Unlock()
		if awaited {
			w.done <- struct{}{}
		}
	}()
	w.session.flush()
	w.readAhead()
}

func (w *watch) readAhead() {
	in := w.session.in
	if in.err != nil {
		return
	}
	buf := largeBuffers.Get().(*[largeBuffer]byte)
	defer largeBuffers.Put(buf)
	for in.hasRoomAhead(len(buf)) {
		n, err := w.session.sock.Read(buf[:])
		in.keepAhead(buf[:n])
		switch {
		case errors.Is(err, errWoken):
			w.session.sock.calm()
			if w.stopping() {
				return
			}
		case errors.Is(err, io.EOF):
			in.err = err
			w.session.clientEnded()
			return
		case err != nil:
			in.err = err
			w.session.clientLeft()
			return
		}
	}
}

func (w *watch) stopping() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop
}
