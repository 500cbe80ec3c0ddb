package proxy

import (
	"time"

	"redlock-proxy/proxy/config"
)

const (
	// sweepEvery is how often sessions are looked at for what nobody else
	// would notice; idle times and the like are that exact.
	sweepEvery = time.Second
	// sweepOften is for limits that are short.
	sweepOften = 10 * time.Millisecond
	// upstreamPatience is how long an upstream may take no commands before its
	// session ends. A Lua script or a FLUSHALL keeps a healthy Redis from reading
	// for minutes.
	upstreamPatience = 5 * time.Minute
	// relaxAfter is when a silent connection's large buffer is taken back.
	relaxAfter = 2 * time.Second
)

// sweepUntilStopped looks after all sessions, so that none of them needs a
// timer or a deadline while all is well.
func (srv *proxyServer) sweepUntilStopped() {
	began := time.Now()
	files := &fileWatch{allowed: openFilesAllowed, log: srv.cfg.log}
	for {
		limits := &srv.settings().Limits
		select {
		case <-srv.running.Done():
			return
		case <-time.After(sweepPause(limits)):
		}
		srv.clock.Advance(int64(time.Since(began)))
		sessions := srv.all()
		files.look(len(sessions), limits)
		for _, s := range sessions {
			s.inspectOrEnd(limits)
		}
	}
}

// inspectOrEnd is inspect, and a panic in it ends the session only.
func (s *session) inspectOrEnd(limits *config.Limits) {
	defer func() {
		if reason := recover(); reason != nil {
			s.panicked(reason)
		}
	}()
	s.inspect(limits)
}

// sweepPause lets a limit be exceeded by a quarter at most.
func sweepPause(limits *config.Limits) time.Duration {
	pause := sweepEvery
	for _, limit := range []time.Duration{limits.Idle, limits.LoginTime, limits.UnreadTime} {
		if limit > 0 {
			pause = min(pause, limit/4)
		}
	}
	return max(pause, sweepOften)
}

// inspect ends a session that is stuck, has been idle for too long or does not
// log in, and has a silent one give its memory back.
func (s *session) inspect(limits *config.Limits) {
	up := s.upstream.Load()
	switch {
	case limits.UnreadTime > 0 && s.sock.Stalled() > limits.UnreadTime:
		s.server.cfg.metrics.LimitReached(string(config.LimitUnreadTime))
		s.cutOff()
		return
	case up != nil && up.conn.Stalled() > upstreamPatience:
		s.cutOff()
		return
	case s.login.Load() == loginOwed && limits.LoginTime > 0 && s.reading.Load() &&
		s.server.clock.Since(s.arrived) > limits.LoginTime:
		s.expire(config.LimitLoginTime)
		return
	}
	silent := s.sock.Silent()
	if limits.Idle > 0 && silent > limits.Idle && s.isIdle() {
		s.expire(config.LimitIdle)
		return
	}
	s.endIfOutdated()
	if silent > relaxAfter && s.sock.HasLargeBuffer() {
		s.sock.Wake()
	}
	if up != nil && up.conn.Silent() > relaxAfter && up.conn.HasLargeBuffer() {
		up.conn.Wake()
	}
}

// isIdle: the client's silence is not that of one who waits for something.
func (s *session) isIdle() bool {
	if l := s.listening.Load(); !s.reading.Load() || l != nil && l.Subscribed() {
		return false
	}
	up := s.upstream.Load()
	return up == nil || up.owed.settled(false) && !up.owed.listens()
}

// expire ends the session as soon as it has looked up from reading.
func (s *session) expire(reached config.LimitName) {
	if !s.expired.Swap(true) {
		s.server.cfg.metrics.LimitReached(string(reached))
	}
	s.sock.Wake()
}

// cutOff ends the session without further ado.
func (s *session) cutOff() {
	s.sock.Abandon()
	if up := s.upstream.Load(); up != nil {
		up.conn.Abandon()
	}
}
