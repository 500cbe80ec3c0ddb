package session

import (
	"context"

	"redlock-proxy/redlock/loop"
)

// Busy calls wait, which may take long, while the minder minds the client. The function must
// not touch the input or the pending replies. It runs on a goroutine: the session leaves the
// loop, until it waits for its client again.
func (s *Session) Busy(wait func()) {
	s.task.Leave()
	s.Parked(func(context.Context) { wait() })
}

// Parked is Busy for a wait that does not block: it finds the session's task in its context,
// and parks it, or leaves the loop before it blocks.
func (s *Session) Parked(wait func(context.Context)) {
	if s.parked == nil {
		s.parked = loop.NewContext(s.ctx, s.task)
	}
	s.whileMinded(func() { wait(s.parked) })
}

// whileMinded calls wait while the minder minds the client.
func (s *Session) whileMinded(wait func()) {
	s.minder.Begin(len(s.pending) > 0)
	wait()
	s.minder.End()
}

// Doing names the command that is performed, for the log of long rounds of the loop.
func (s *Session) Doing(command string) { s.task.Doing(command) }

// OnLoop tells whether the loop runs the session now. Only the session may ask.
func (s *Session) OnLoop() bool { return s.task.OnLoop() }

// LeaveLoop is called before anything that may take long, or wait for another goroutine. The
// session comes back when it waits for its client again.
func (s *Session) LeaveLoop() { s.task.Leave() }

// minded is the session as seen by its minder.
type minded struct{ *Session }

func (m minded) Flush() {
	if len(m.pending) == 0 {
		return
	}
	m.out.Lock()
	m.flushLocked(func(replies []byte) []byte { return replies })
}

// ClientEnded handles EOF from the client. Running lock commands are cancelled, and later ones
// that take a lock are not tried: a lock granted to a client that has left is worse than an
// error (redlock.Outcome's Abandoned). A client that only half-closed still gets the upstream's
// replies, unless a forwarded command may block, as with Redis.
func (m minded) ClientEnded() {
	m.left.Store(true)
	if m.blocking.Load() {
		m.ClientLeft()
		return
	}
	m.gone()
	m.up.Drain()
}

// ClientLeft is called when the client reads no more, or has certainly gone.
func (s *Session) ClientLeft() {
	s.left.Store(true)
	s.gone()
	s.up.Leave()
}
