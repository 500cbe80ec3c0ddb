package session

import (
	"log/slog"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

const (
	// mostShared bounds the commands of a session that are unanswered on a shared connection, in
	// bytes, and so what others may have to wait for. A client with more gets its own.
	mostShared = 64 << 10
	// mostReplies bounds their number.
	mostReplies = 1024
)

// Upstream is the session's own upstream connection, or nil. Any goroutine may call it. Only
// the session changes the connection.
func (s *Session) Upstream() *upstream.Conn { return s.up.Own() }

// InPipe tells whether the upstream connection carries something else than commands and
// replies.
func (s *Session) InPipe() bool {
	own := s.Upstream()
	return own != nil && own.Pipe()
}

// SetNames says for which names the masters are asked, nil for none.
func (s *Session) SetNames(names *Names) { s.names.Store(names) }

// Subscriptions are the numbers of the client's subscriptions by wire.Family. Any goroutine may call it.
func (s *Session) Subscriptions() [3]int {
	if own := s.Upstream(); own != nil {
		return own.Subscriptions()
	}
	return s.names.Load().Counts()
}

// Forward adds the command last taken from the input to the batch, without the bytes between
// it and the command before. There must be a connection. The zero Expectation is for a
// command that is never answered.
func (s *Session) Forward(cmd wire.Command, want upstream.Expectation) {
	s.settleAsked()
	if s.silent {
		want.To = upstream.ToNobody
	}
	s.batch.Forward(cmd, want)
}

// Insert adds the proxy's own commands to the batch. Their replies go to nobody, or to the session
// (Settled).
func (s *Session) Insert(commands []byte, want upstream.Expectation) { s.batch.Insert(commands, want) }

// send writes the batch in one write, after the replies that come before it.
func (s *Session) send() { s.batch.Send() }

func (s *Session) beforeSend(commands int) {
	s.Flush()
	s.Env.Metrics.Forwarded(commands)
}

// Settle waits until the upstream has answered every forwarded command and the client has
// the replies. It returns false if the session must end instead.
func (s *Session) Settle() bool {
	_, ok := s.Settled()
	return ok
}

// Settled is Settle. It also returns the upstream's replies to the session itself, which are valid until
// the next command, or nil if there were none or they were too long to keep.
func (s *Session) Settled() (replies []byte, ok bool) {
	s.settleAsked()
	s.send()
	if s.up.Drained() {
		replies, ok = s.up.Wait()
	} else {
		s.whileBusy(func() { replies, ok = s.up.Wait() })
	}
	if !ok {
		s.End(UpstreamGone)
		return nil, false
	}
	s.blocking.Store(false)
	return replies, true
}

// Ask sends one of the proxy's own commands and returns the upstream's reply, which is valid
// until the next command. The session's own connection must be open. It returns false if the session must
// end instead.
func (s *Session) Ask(request []byte) (reply []byte, ok bool) {
	s.Insert(request, upstream.Expectation{To: upstream.ToOwner, Count: 1})
	if reply, ok = s.Settled(); ok && reply == nil {
		reply = []byte(wire.ErrUpstreamReply)
	}
	return reply, ok
}

// Open opens the session's own upstream connection, with this login. There must be none. known tells
// whether the upstream has identified the client. If not, it waits for the client's own login.
func (s *Session) Open(dial upstream.Dial, login *upstream.Login) (known bool, failure *upstream.Failure) {
	failure = s.dial(func() (failure *upstream.Failure) {
		// Not s.ctx: a client that has only half-closed still wants its replies.
		known, failure = s.up.Open(s.running, dial, login)
		return failure
	})
	return known, failure
}

// dial opens a connection after everything before is answered.
func (s *Session) dial(open func() *upstream.Failure) (failure *upstream.Failure) {
	switch {
	case s.DialError() != "":
		return &upstream.Failure{Reply: s.dialError}
	case !s.Settle():
		return &upstream.Failure{Reply: wire.ErrUpstreamDown} // the session ends
	}
	s.Busy(func() { failure = open() })
	s.dialed = s.in.Arrived()
	switch {
	case failure == nil:
		s.Env.Reached.Add(1)
	case !failure.Rejected:
		s.dialError = failure.Reply
		s.Env.Metrics.UpstreamDialFailed()
		if count, due := s.Env.dials.Due(time.Now()); due {
			s.Env.Log.Warn("upstream dial failed", slog.Any("error", failure.Err), slog.Int("failed_since_last_line", count))
		}
	}
	return failure
}

// Share has Forward send the command over a connection that other sessions use, too. It returns
// false if that must not or cannot be, because the session has its own connection, or the command
// or the pipeline is too long. If there is no connection, it returns an error, and the command
// must be answered with that. The settings are those by which the caller has judged the command.
func (s *Session) Share(cmd wire.Command, version wire.Version, settings *config.Settings) (yes bool, refusal wire.Error) {
	if settings.DialUpstream == nil || s.Upstream() != nil || s.up.IsSlow() {
		return false, ""
	}
	if s.batch.Empty() && s.up.Drained() {
		s.unanswered, s.unansweredBytes = 0, 0
	}
	s.unanswered++
	s.unansweredBytes += len(cmd.Raw)
	if s.unanswered > mostReplies || s.unansweredBytes > mostShared {
		return false, ""
	}
	server := serverOf(settings)
	if s.up.On(server, version) || s.DialError() == "" && s.Settle() && s.up.TryJoin(server, version) {
		return true, ""
	}
	if failure := s.dial(func() *upstream.Failure { return s.up.Join(server, version, settings.DialUpstream) }); failure != nil {
		return false, failure.Reply
	}
	return true, ""
}

// serverOf is the server to which the settings lead.
func serverOf(s *config.Settings) upstream.Server {
	login := &s.Upstream
	return upstream.Server{Name: s.Config.Upstream.String(), User: login.User, Password: login.Password, DB: login.DB}
}

// CloseUpstream delivers the upstream's pending replies and closes the session's own connection. It
// returns false if the session must end instead.
func (s *Session) CloseUpstream() bool {
	s.send()
	whole := false
	s.whileBusy(func() { whole = s.up.CloseOwn() })
	if !whole {
		s.End(UpstreamGone)
	}
	return whole
}

// owner is the session as seen by its member.
type owner struct{ *Session }

func (o owner) Confirmed(c wire.Confirmation) { o.names.Load().Confirm(c) }
func (o owner) Broken()                       { o.sock.Load().Unpark() }
func (o owner) Unread()                       { o.End(Unread) }
func (o owner) OutOfSync(why error)           { o.End(OutOfSync, slog.Any("error", why)) }
