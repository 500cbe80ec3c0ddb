package session

import (
	"context"

	"redlock-proxy/redlock/loop"
)

// Busy sends what was forwarded, and calls wait, which may take long, while the busy timer looks after the
// client. The function must not touch the input or the pending replies. It runs on a goroutine: the session
// leaves the loop, until it waits for its client again.
func (s *Session) Busy(wait func()) {
	s.task.Leave()
	s.Parked(func(context.Context) { wait() })
}

// Parked is Busy for a wait that does not block: it finds the session's task in its context,
// and parks it, or leaves the loop before it blocks.
func (s *Session) Parked(wait func(context.Context)) {
	s.send()
	if s.parked == nil {
		s.parked = loop.NewContext(s.ctx, s.task)
	}
	s.whileBusy(func() { wait(s.parked) })
}

// whileBusy calls wait while the busy timer looks after the client.
func (s *Session) whileBusy(wait func()) {
	s.busy.begin(len(s.pending) > 0)
	wait()
	s.busy.end()
}

// Doing names the command that is performed, for the log of long rounds of the loop.
func (s *Session) Doing(command string) { s.task.Doing(command) }

// OnLoop tells whether the loop runs the session now. Only the session may ask.
func (s *Session) OnLoop() bool { return s.task.OnLoop() }

// LeaveLoop is called before anything that may take long, or wait for another goroutine. The
// session comes back when it waits for its client again.
func (s *Session) LeaveLoop() { s.task.Leave() }

// flushWhileBusy writes the pending replies. The busy timer calls it.
func (s *Session) flushWhileBusy() {
	if len(s.pending) > 0 {
		s.out.Lock()
		s.flushLocked(func(replies []byte) []byte { return replies })
	}
}

// clientEnded handles EOF from the client. Running lock commands are cancelled, and later ones
// that take a lock are not tried: a lock granted to a client that has left is worse than an
// error (redlock.Outcome's Abandoned). A client that only half-closed still gets the upstream's
// replies, unless a forwarded command may block, as with Redis.
func (s *Session) clientEnded() {
	s.left.Store(true)
	if s.blocking.Load() {
		s.clientLeft()
		return
	}
	s.gone()
	s.up.Drain()
}

// clientLeft is called when the client reads no more, or has certainly gone.
func (s *Session) clientLeft() {
	s.left.Store(true)
	s.gone()
	s.up.Leave()
}
