package session

import (
	"time"

	"redlock-proxy/proxy/config"
)

const (
	// upstreamPatience is how long the upstream may read no commands. Then the session
	// ends. A Lua script or a FLUSHALL can keep a healthy Redis from reading for minutes.
	upstreamPatience = 5 * time.Minute
)

// Inspect ends the session if it is stuck, silent for too long or not logged in in time. Any goroutine
// may call it. A panic in it ends this session only.
func (s *Session) Inspect(limits *config.Limits) {
	defer func() {
		if reason := recover(); reason != nil {
			s.Panicked(reason)
		}
	}()
	sock := s.sock.Load()
	if sock == nil {
		return // the TLS handshake has its own limit
	}
	mustLogIn, waits := s.handler.Swept()
	switch {
	case limits.UnreadTime > 0 && sock.Stalled() > limits.UnreadTime:
		s.End(Unread)
		return
	case s.up.Stalled() > upstreamPatience:
		s.End(UpstreamStuck)
		return
	case mustLogIn && limits.LoginTime > 0 && s.reading.Load() &&
		s.Env.Clock.Since(s.arrived) > limits.LoginTime:
		s.End(NotLoggedIn)
		return
	}
	if limits.Idle > 0 && sock.Silent() > limits.Idle && !waits && s.isIdle() {
		s.End(Idle)
		return
	}
}

// isIdle tells whether the client is silent without waiting for anything.
func (s *Session) isIdle() bool {
	own := s.Upstream()
	return s.reading.Load() && s.up.Drained() && (own == nil || !own.Listens())
}
