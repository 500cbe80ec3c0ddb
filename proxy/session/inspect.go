package session

import (
	"time"

	"redlock-proxy/proxy/config"
)

const (
	// upstreamPatience is how long the upstream may read no commands. Then the session
	// ends. A Lua script or a FLUSHALL can keep a healthy Redis from reading for minutes.
	upstreamPatience = 5 * time.Minute
	// shrinkAfter is the silence after which a connection gives its large buffer back.
	shrinkAfter = 2 * time.Second
)

// Inspect ends the session if it is stuck, silent for too long or not logged in in time. It
// makes a silent session give memory back. Any goroutine may call it. A panic in it ends this
// session only.
func (s *Session) Inspect(limits *config.Limits) {
	defer func() {
		if reason := recover(); reason != nil {
			s.Panicked(reason)
		}
	}()
	up := s.upstream.Load()
	mustLogIn, waits := s.handler.Swept()
	switch {
	case limits.UnreadTime > 0 && s.sock.Stalled() > limits.UnreadTime:
		s.End(Unread)
		return
	case up != nil && up.Stalled() > upstreamPatience:
		s.End(UpstreamStuck)
		return
	case mustLogIn && limits.LoginTime > 0 && s.reading.Load() &&
		s.Env.Clock.Since(s.arrived) > limits.LoginTime:
		s.End(NotLoggedIn)
		return
	}
	if limits.Idle > 0 && s.sock.Silent() > limits.Idle && !waits && s.isIdle() {
		s.End(Idle)
		return
	}
	s.sock.ShrinkAfter(shrinkAfter)
}

// isIdle tells whether the client is silent without waiting for anything.
func (s *Session) isIdle() bool {
	up, m := s.upstream.Load(), s.shared.Load()
	return s.reading.Load() && (up == nil || up.Drained() && !up.Listens()) && (m == nil || m.Drained())
}
