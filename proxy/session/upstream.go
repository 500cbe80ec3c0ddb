package session

import (
	"log/slog"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
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

// Forward sends a command to the upstream, together with others of the same input. There must be a connection. The
// zero Expectation is for a command that is never answered.
func (s *Session) Forward(cmd wire.Command, want upstream.Expectation) {
	s.settleAsked()
	if s.silent {
		want.To = upstream.ToNobody
	}
	s.forwarded++
	s.Insert(cmd.Raw, want)
}

// Insert sends the proxy's own commands before the next that is forwarded. Their replies go to nobody, or to the
// session (Settled).
func (s *Session) Insert(commands []byte, want upstream.Expectation) {
	if full := s.up.Forward(commands, want); full {
		s.send()
	}
}

// send sends what was forwarded, after the replies that come before its own.
func (s *Session) send() {
	if !s.up.Gathers() {
		return
	}
	s.Flush()
	s.Env.Metrics.Forwarded(s.forwarded)
	s.forwarded = 0
	if s.up.MustWait() {
		s.whileBusy(s.up.Send)
	} else {
		s.up.Send()
	}
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
	s.dialed = s.in.arrived()
	switch {
	case failure == nil:
		s.Env.Reached.Add(1)
	case !failure.Rejected:
		s.dialError = failure.Reply
		s.Env.Metrics.UpstreamDialFailed()
		if count, due := s.Env.dials.Due(time.Now()); due {
			s.Env.Log.Warn("upstream dial failed (deploy/INCIDENTS.md#noupstream)", slog.Any("error", failure.Err), slog.Int("failed_since_last_line", count))
		}
	}
	return failure
}

// Share forwards a command that has one reply over a connection that other sessions use, too. It returns
// false if that must not or cannot be, because the session has its own connection, or the command
// or the pipeline is too long. If there is no connection, it returns an error, and the command
// must be answered with that. The settings are those by which the caller has judged the command.
func (s *Session) Share(cmd wire.Command, version wire.Version, settings *config.Settings) (done bool, refusal wire.Error) {
	may, isOn := s.up.MayShare(len(cmd.Raw), version)
	if !may || settings.DialUpstream == nil {
		return false, ""
	}
	if !isOn || s.shares != settings {
		if refusal := s.join(version, settings); refusal != "" {
			return false, refusal
		}
	}
	s.Forward(cmd, upstream.Expectation{Count: 1})
	return true, ""
}

// join has the session use a shared connection of these settings. It dials if there is none.
func (s *Session) join(version wire.Version, settings *config.Settings) (refusal wire.Error) {
	login := &settings.Upstream
	server := upstream.Server{Name: settings.Config.Upstream.String(), User: login.User, Password: login.Password, DB: login.DB}
	joined := false
	if s.DialError() == "" && s.Settle() {
		joined, _ = s.up.Join(server, version, nil)
	}
	if !joined {
		failure := s.dial(func() (failure *upstream.Failure) {
			_, failure = s.up.Join(server, version, settings.DialUpstream)
			return failure
		})
		if failure != nil {
			return failure.Reply
		}
	}
	s.shares = settings
	return ""
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
func (o owner) Unread()                       { o.End(Unread) }
