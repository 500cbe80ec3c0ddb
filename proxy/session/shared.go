package session

import (
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/shared"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

const (
	// mostShared bounds the commands of a session that are unanswered on a shared connection, in
	// bytes, and so what others may have to wait for. A client with more gets its own.
	mostShared = 64 << 10
	// mostReplies bounds their number.
	mostReplies = 1024
	// finishPatience bounds the time in which a client that has left may get its last replies.
	finishPatience = 10 * time.Second
)

// Share has Forward send the command over a connection that other sessions use, too. It returns
// false if that must not or cannot be, because the session has its own connection, or the command
// or the pipeline is too long. If there is no connection, it returns an error, and the command
// must be answered with that. The settings are those by which the caller has judged the command.
func (s *Session) Share(cmd wire.Command, version wire.Version, settings *config.Settings) (yes bool, refusal wire.Error) {
	if s.Env.Shared == nil || settings.DialUpstream == nil || s.upstream.Load() != nil {
		return false, ""
	}
	m := s.shared.Load()
	if m == nil {
		m = s.Env.Shared.NewMember(s.out, sharedOwner{s}, s.task)
		s.shared.Store(m)
		if s.left.Load() { // ClientEnded has not met the member
			m.AbandonAfter(finishPatience)
		}
	}
	if m.IsSlow() {
		return false, ""
	}
	if s.batch.Empty() && m.Drained() {
		s.unanswered, s.unansweredBytes = 0, 0
	}
	s.unanswered++
	s.unansweredBytes += len(cmd.Raw)
	if s.unanswered > mostReplies || s.unansweredBytes > mostShared {
		return false, ""
	}
	if server := serverOf(settings); !m.On(server, version) {
		refusal = s.join(m, settings, server, version)
	}
	return refusal == "", refusal
}

// serverOf is the server to which the settings lead.
func serverOf(s *config.Settings) shared.Server {
	login := &s.Upstream
	return shared.Server{Name: s.Config.Upstream.String(), User: login.User, Password: login.Password, DB: login.DB}
}

// join has the member use a connection to the server.
func (s *Session) join(m *shared.Member, settings *config.Settings, server shared.Server, version wire.Version) (refusal wire.Error) {
	switch {
	case s.DialError() != "":
		return s.dialError
	case !s.Settle():
		return wire.ErrUpstreamDown // the session ends
	}
	if m.TryJoin(server, version) {
		return ""
	}
	var failure *upstream.Failure
	s.Busy(func() { failure = m.Join(server, version, settings.DialUpstream) })
	s.dialed = s.in.Arrived()
	if failure != nil {
		s.dialFailed(failure.Reply, failure.Err)
		return failure.Reply
	}
	s.Env.Reached.Add(1)
	return ""
}

// sender is where the batch goes. The batch is empty if the session has no connection at all.
func (s *Session) sender() upstream.Sender {
	if up := s.upstream.Load(); up != nil {
		return up
	}
	return s.shared.Load()
}

// settleShared is Settle for what went over a shared connection.
func (s *Session) settleShared() bool {
	m := s.shared.Load()
	if m == nil {
		return true
	}
	s.Send()
	ok := !m.Failed()
	if ok && !m.Drained() {
		s.minder.Begin(len(s.pending) > 0)
		ok = m.Wait(0)
		s.minder.End()
	}
	if !ok {
		s.End(UpstreamGone)
	}
	return ok
}

// sharedOwner is the session as seen by its shared connection.
type sharedOwner struct{ session *Session }

func (o sharedOwner) Broken()     { o.session.sock.Load().Unpark() }
func (o sharedOwner) ClientLeft() { o.session.ClientLeft(); o.session.sock.Load().Unpark() }
func (o sharedOwner) Unread()     { o.session.End(Unread) }
