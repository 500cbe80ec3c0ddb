package proxy

import "time"

const (
	// sweepEvery is how often sessions are looked at for what nobody else
	// would notice; idle times and the like are that exact.
	sweepEvery = time.Second
	// sweepOften is for idle times that are short.
	sweepOften = 10 * time.Millisecond
	// stallPatience is how long a client may take no replies, and an upstream
	// no commands, before its session ends. A Lua script or a FLUSHALL keeps a
	// healthy Redis from reading for minutes.
	stallPatience = 5 * time.Minute
	// relaxAfter is when a silent connection's large buffer is taken back.
	relaxAfter = 2 * time.Second
)

// sweepUntilStopped looks after all sessions, so that none of them needs a
// timer or a deadline while all is well.
func (srv *proxyServer) sweepUntilStopped() {
	began := time.Now()
	for {
		idle := srv.settings().idle
		every := sweepEvery
		if idle > 0 {
			every = max(sweepOften, min(every, idle/4))
		}
		select {
		case <-srv.running.Done():
			return
		case <-time.After(every):
		}
		srv.clock.advance(int64(time.Since(began)))
		for _, s := range srv.all() {
			s.inspect(idle)
		}
	}
}

// inspect ends a session that is stuck or has been idle for too long, and has
// a silent one give its memory back.
func (s *session) inspect(idle time.Duration) {
	up := s.upstream.Load()
	if s.sock.stalled() > stallPatience || up != nil && up.conn.stalled() > stallPatience {
		s.cutOff()
		return
	}
	silent := s.sock.silent()
	l := s.listening.Load()
	waits := l != nil && l.subscribed()
	if idle > 0 && silent > idle && s.reading.Load() && !waits && (up == nil || up.owed.settled(false) && !up.owed.listens()) {
		s.expired.Store(true)
		s.sock.wake()
		return
	}
	if silent > relaxAfter && s.sock.swollen.Load() || s.mayRejoin() && s.reading.Load() {
		s.sock.wake()
	}
	if up != nil && up.conn.silent() > relaxAfter && up.conn.swollen.Load() {
		up.conn.wake()
	}
}

// cutOff ends the session without further ado.
func (s *session) cutOff() {
	_ = s.sock.Close()
	if up := s.upstream.Load(); up != nil {
		_ = up.conn.Close()
	}
}
