package session

import (
	"log/slog"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// Forward adds the command last taken from the input to the batch, without the bytes between
// it and the command before. The connection must be open. The zero Expectation is for a
// command that is never answered.
func (s *Session) Forward(cmd wire.Command, want upstream.Expectation) {
	s.settleAsked()
	if s.silent {
		want.To = upstream.ToNobody
	}
	s.batch.Forward(s.sender(), cmd, want)
}

// Insert adds the proxy's own commands to the batch. Nobody gets their replies.
func (s *Session) Insert(commands []byte, count int) {
	s.batch.Insert(s.upstream.Load(), commands, count)
}

// Send writes the batch in one write, after the replies that come before it.
func (s *Session) Send() { s.batch.Send(s.sender()) }

func (s *Session) beforeSend(commands int) {
	s.flush()
	s.Env.Metrics.Forwarded(commands)
}

// Settle waits until the upstream has answered every forwarded command and the client has
// the replies. It returns false if the session must end instead.
func (s *Session) Settle() bool {
	_, ok := s.settleForReply()
	return ok
}

// settleForReply is Settle. It also returns the upstream's reply to the session itself, or nil
// if there was none or it was too long to keep.
func (s *Session) settleForReply() (reply []byte, ok bool) {
	s.settleAsked()
	up := s.upstream.Load()
	if up == nil {
		return nil, s.settleShared()
	}
	s.Send()
	if up.Drained() {
		reply, ok = up.Wait()
	} else {
		s.minder.Begin(len(s.pending) > 0)
		reply, ok = up.Wait()
		s.minder.End()
	}
	if !ok {
		s.End(UpstreamGone)
		return nil, false
	}
	s.blocking = false
	return reply, true
}

// Ask sends one of the proxy's own commands and returns the upstream's reply, which is valid
// until the next Ask. The connection must be open. It returns false if the session must end
// instead.
func (s *Session) Ask(request []byte) (reply []byte, ok bool) {
	return s.AskWhile(request, nil)
}

// AskWhile is Ask, and calls meanwhile before it waits for the reply.
func (s *Session) AskWhile(request []byte, meanwhile func()) (reply []byte, ok bool) {
	reply, ok = s.AskFor(upstream.Expectation{Count: 1}, request, meanwhile)
	if ok && reply == nil {
		reply = []byte(wire.ErrUpstreamReply)
	}
	return reply, ok
}

// AskFor is AskWhile for a request with any expectation. Replies too long to keep are nil.
func (s *Session) AskFor(want upstream.Expectation, request []byte, meanwhile func()) (replies []byte, ok bool) {
	if !s.Settle() {
		return nil, false
	}
	up := s.upstream.Load()
	want.To = upstream.ToOwner
	up.Expect(want)
	up.Write(request)
	if meanwhile != nil {
		meanwhile()
	}
	return s.settleForReply()
}

// TryOpen opens the upstream connection if there is none. If it cannot, it returns an error.
func (s *Session) TryOpen() (refusal wire.Error) {
	settings := s.Env.Active.Load()
	switch {
	case s.upstream.Load() != nil:
		return ""
	case settings.DialUpstream == nil:
		return wire.ErrUpstreamNone
	case s.DialError() != "":
		return s.dialError
	case !s.settleShared():
		return wire.ErrUpstreamDown // the session ends
	}
	s.Busy(func() { refusal = s.dial(settings) })
	s.dialed = s.in.Arrived()
	return refusal
}

// dial is TryOpen if there is no connection yet.
func (s *Session) dial(settings *config.Settings) (refusal wire.Error) {
	// Not s.ctx: a client that has only half-closed still wants its replies.
	login := s.handler.Login(settings)
	up, known, failure := upstream.Open(s.running, settings.DialUpstream, login, upstream.Options{
		Client:   s.out,
		Events:   upstreamOwner{s},
		Captures: settings.Limits.Bulk + conn.SmallBuffer,
		Clock:    s.Env.Clock,
		Memory:   s.Env.Budget,
		Task:     s.task,
	})
	switch {
	case failure == nil:
	case failure.Rejected:
		s.handler.Rejected(failure.Reply)
		return failure.Reply
	default:
		s.dialFailed(failure.Reply, failure.Err)
		return failure.Reply
	}
	s.upstream.Store(up)
	s.Env.Reached.Add(1)
	s.handler.Opened(login, known)
	return ""
}

func (s *Session) dialFailed(refusal wire.Error, err error) {
	s.dialError = refusal
	s.Env.Metrics.UpstreamDialFailed()
	if count, due := s.Env.dials.Due(time.Now()); due {
		s.Env.Log.Warn("upstream dial failed", slog.Any("error", err), slog.Int("failed_since_last_line", count))
	}
}

// upstreamOwner is the session as seen by its upstream connection.
type upstreamOwner struct{ session *Session }

func (o upstreamOwner) Ended()              { o.session.sock.Load().Unpark() }
func (o upstreamOwner) ClientLeft()         { o.session.ClientLeft() }
func (o upstreamOwner) Panicked(reason any) { o.session.Panicked(reason) }

func (o upstreamOwner) Confirmed(c wire.Confirmation) { o.session.handler.Confirmed(c) }

// OutOfSync ends the session, because its connection has ended.
func (o upstreamOwner) OutOfSync(why error) { o.session.End(OutOfSync, slog.Any("error", why)) }

// CloseUpstream delivers the upstream's pending replies and closes the connection. It returns
// false if the session must end instead.
func (s *Session) CloseUpstream() bool {
	up := s.upstream.Load()
	if up == nil {
		return s.settleShared()
	}
	s.Send()
	whole := false
	s.Busy(func() { whole = up.Finish() })
	if !whole {
		s.End(UpstreamGone)
		return false
	}
	s.upstream.Store(nil)
	return true
}

// InPipe tells whether the upstream connection carries something else than commands and
// replies.
func (s *Session) InPipe() bool {
	up := s.upstream.Load()
	return up != nil && up.Pipe()
}
