package session

import (
	"context"
	"log/slog"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/wire"
)

// A Reason says why a session ends.
type Reason uint8

const (
	// ClientGone: the client closed its connection, or left before it was served.
	ClientGone Reason = iota
	// Quit: the client sent QUIT.
	Quit
	// ForgedRequest: a browser sent HTTP.
	ForgedRequest
	// ProtocolError: the client sent bytes that are no command.
	ProtocolError
	// NoMemory: there is no memory left for the client's commands.
	NoMemory
	// QueryTooLong: the client's unfinished command exceeds its limit.
	QueryTooLong
	// HandshakeFailed: the TLS handshake with the client failed.
	HandshakeFailed
	// UserGone: the client's user was deleted or is no longer accepted.
	UserGone
	// UpstreamGone: the upstream closed the session's connection.
	UpstreamGone

	// Draining: the process ends.
	Draining
	// NotLoggedIn: the client did not log in within limits.login_time.
	NotLoggedIn
	// Idle: the client was silent for limits.idle.
	Idle
	// MissedMessages: a subscriber may have missed some. It will connect again and look
	// for itself, as after a restart of a single Redis.
	MissedMessages

	// Unread: the client does not read its replies.
	Unread
	// UpstreamStuck: the upstream does not read its commands.
	UpstreamStuck
	// Overflow: a subscriber does not read, and its outbox exceeds the limit.
	Overflow
	// OverflowMemory: a subscriber does not read, and memory is used up.
	OverflowMemory
	// Revoked: the client's user lost the right to what the client listens to.
	Revoked
	// Killed: another client sent CLIENT KILL.
	Killed
	// CutOff: the process ends and waits no longer.
	CutOff
	// LeaseLost: a lock of the client could not be renewed, and may have another holder.
	LeaseLost
	// Panicked: the proxy has a defect.
	Panicked
)

// A drain says which commands of the client are still performed.
type drain uint8

const (
	// afterCommands: all that were read. Any goroutine may give such a reason.
	afterCommands drain = iota
	// now: none, but pending replies are delivered. Only the session's own goroutine may
	// give such a reason.
	now
	// atOnce: none, and the connections are closed as they are. Any goroutine may give such
	// a reason.
	atOnce
)

// An ending says what a reason does and how it is reported.
type ending struct {
	how   drain
	reply wire.Error            // the last reply to the client; may be empty
	limit config.LimitName      // the limit that was reached; may be empty
	count func(*events.Metrics) // a further counter; may be nil
	level slog.Level
	text  string // the log line; if empty, nothing is logged
}

var endings = [...]ending{
	ClientGone:      {how: now},
	Quit:            {how: now},
	ForgedRequest:   {how: now},
	ProtocolError:   {how: now, count: (*events.Metrics).ProtocolError},
	NoMemory:        {how: now, limit: config.LimitMemory, reply: wire.ErrMemory},
	QueryTooLong:    {how: now, limit: config.LimitQuery},
	HandshakeFailed: {how: now, count: (*events.Metrics).HandshakeFailed, level: slog.LevelWarn, text: "closing client: TLS handshake failed"},
	UserGone:        {how: now},
	UpstreamGone:    {how: now},

	Draining:    {how: afterCommands},
	NotLoggedIn: {how: afterCommands, limit: config.LimitLoginTime},
	Idle:        {how: afterCommands, limit: config.LimitIdle},
	MissedMessages: {how: afterCommands, count: listenerEnded(events.ListenerGap),
		level: slog.LevelInfo, text: "closing client: subscriber may have missed messages"},

	Unread:        {how: atOnce, limit: config.LimitUnreadTime},
	UpstreamStuck: {how: atOnce},
	Overflow: {how: atOnce, limit: config.LimitOutput, count: listenerEnded(events.ListenerOverflow),
		level: slog.LevelWarn, text: textOverflow},
	OverflowMemory: {how: atOnce, limit: config.LimitMemory, count: listenerEnded(events.ListenerOverflow),
		level: slog.LevelWarn, text: textOverflow},
	Revoked: {how: atOnce},
	Killed:  {how: atOnce, level: slog.LevelInfo, text: "closing client: CLIENT KILL"},
	CutOff:  {how: atOnce},
	LeaseLost: {how: atOnce,
		level: slog.LevelWarn, text: "closing client: a lock could not be renewed in time; the client may have lost it"},
	Panicked: {how: atOnce, count: (*events.Metrics).PanicRecovered,
		level: slog.LevelError, text: "closing client: panic in the proxy (please report)"},
}

const textOverflow = "closing client: subscriber does not read its messages"

func listenerEnded(reason string) func(*events.Metrics) {
	return func(m *events.Metrics) { m.ListenerEnded(reason) }
}

// stopping are the reasons after which commands that were read are not performed.
var stopping = func() (stop uint32) {
	for reason, e := range endings {
		if e.how != afterCommands {
			stop |= 1 << reason
		}
	}
	return stop
}()

// End ends the session. Each reason is counted and logged the first time, with the details.
// A later reason is reported too: a session that drains may still show a defect.
func (s *Session) End(why Reason, details ...slog.Attr) {
	e := &endings[why]
	if s.ended.Or(1<<why)&(1<<why) == 0 {
		s.report(why, details)
	}
	switch e.how {
	case afterCommands:
		if s.sock.Load() != nil {
			s.task.Unpark()
		} else {
			s.gone() // it has no commands yet; this ends the TLS handshake
		}
	case atOnce:
		s.cutOff()
	}
}

// HasEnded tells whether the session ends for this reason.
func (s *Session) HasEnded(why Reason) bool { return s.ended.Load()&(1<<why) != 0 }

// ClientLeaves tells whether the session ends because of the client alone.
func (s *Session) ClientLeaves() bool {
	ended, own := s.ended.Load(), uint32(1<<ClientGone|1<<Quit)
	if s.left.Load() {
		own |= 1 << UpstreamGone // it ends soon after a client that has left
	}
	return ended != 0 && ended&^own == 0
}

// Ending tells whether the session performs no more commands.
func (s *Session) Ending() bool { return s.ended.Load()&stopping != 0 }

// report counts and logs why the session ends.
func (s *Session) report(why Reason, details []slog.Attr) {
	e := &endings[why]
	s.Env.Metrics.LimitReached(string(e.limit))
	if e.count != nil {
		e.count(s.Env.Metrics)
	}
	if e.text == "" {
		return
	}
	if why == HandshakeFailed { // clients can cause this at will
		count, due := s.Env.handshakes.Due(time.Now())
		if !due {
			return
		}
		details = append(details, slog.Int("failed_since_last_line", count))
	}
	s.Env.Log.LogAttrs(context.Background(), e.level, e.text, details...)
}

// lastReply is the last reply to the client when the session ends, or "".
func (s *Session) lastReply() wire.Error {
	for why := range endings {
		if s.HasEnded(Reason(why)) && endings[why].reply != "" {
			return endings[why].reply
		}
	}
	return ""
}

// cutOff closes the connections as they are.
func (s *Session) cutOff() {
	if sock := s.sock.Load(); sock != nil {
		sock.Abandon()
	}
	s.gone()
	s.up.Abandon()
}

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
	now := time.Now()
	switch {
	case limits.UnreadTime > 0 && sock.Stalled(now) > limits.UnreadTime:
		s.End(Unread)
	case s.up.Look(now) > upstreamPatience:
		s.End(UpstreamStuck)
	case mustLogIn && limits.LoginTime > 0 && s.in.isFilling() && now.Sub(s.arrived) > limits.LoginTime:
		s.End(NotLoggedIn)
	case limits.Idle > 0 && sock.Silent(now) > limits.Idle && !waits && s.isIdle():
		s.End(Idle)
	}
}

// isIdle tells whether the client is silent without waiting for anything.
func (s *Session) isIdle() bool {
	own := s.Upstream()
	return s.in.isFilling() && s.up.Drained() && (own == nil || !own.Listens())
}
