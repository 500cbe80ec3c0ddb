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

// Inspect ends the session if it is stuck, silent for too long or not logged in in time. mustLogIn: the
// client has not logged in yet and must. waits: it is silent because it waits for messages or works under
// its locks. Any goroutine may call it.
func (s *Session) Inspect(limits *config.Limits, mustLogIn, waits bool) {
	sock := s.sock.Load()
	if sock == nil {
		return // the TLS handshake has its own limit
	}
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
