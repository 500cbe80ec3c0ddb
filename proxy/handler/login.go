package handler

import (
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// With auth: upstream, the upstream has the users. The session sends the login on its own
// upstream connection, which then belongs to that user. The session opens the connection at
// the client's first bytes, because only the upstream knows whether a client without a login
// is its user default. While the upstream cannot be reached, the proxy accepts a login that
// the upstream accepted a while ago. The proxy vouches for that client until the connection
// can be opened.

// vouched is a login that the upstream has accepted before, on another connection.
type vouched struct {
	upstream.SentLogin
	at      time.Time
	isNew   bool // the client has just sent it
	refused bool // the upstream has refused it; only if isNew
}

// claims returns the claim in the arguments of AUTH. args is nil if the client has sent none.
func (h *handler) claims(args [][]byte) upstream.SentLogin {
	return h.service.accepted.Sent(h.Env.Active.Load().Config.Upstream.String(), config.DefaultUser, args)
}

// Arrived opens the upstream connection at the first bytes of a client that is not logged in.
// It does so only if the upstream has the users.
func (h *handler) Arrived() {
	if h.account.Load() != nil || h.Upstream() != nil || h.DialError() != "" || !h.HasInput() {
		return
	}
	if !h.Env.Active.Load().Users.AtUpstream {
		return
	}
	if h.TryOpen() != "" && !h.Ending() {
		h.vouchFor(h.claims(nil))
	}
	h.requireLogin()
}

// logInAtUpstream lets the upstream decide about AUTH, and returns the reply.
func (h *handler) logInAtUpstream(args [][]byte) string {
	says := h.claims(args)
	if h.Upstream() == nil {
		return h.openAs(says)
	}
	first := h.account.Load() == nil
	answer, ok := h.Ask(says.Command)
	switch {
	case !ok:
		return ""
	case answer[0] != '+':
		reply := string(answer)
		h.refused(says, answer)
		return reply
	}
	h.accept(says)
	if first && h.client.DB != 0 {
		if answer, ok = h.askSelect(h.client.DB); ok && answer[0] != '+' {
			h.End(session.UserGone)
			return string(answer)
		}
	}
	return wire.OK
}

// openAs is logInAtUpstream if no connection is open. If the upstream refuses the login, the
// client's earlier claim stays.
func (h *handler) openAs(says upstream.SentLogin) string {
	before := h.vouched
	h.vouched = &vouched{SentLogin: says, isNew: true}
	asked := h.vouched
	refusal := h.TryOpen()
	switch {
	case refusal == "":
		return wire.OK
	case asked.refused:
	case h.vouchFor(says):
		return wire.OK
	}
	h.vouched = before
	return string(refusal)
}

// vouchFor accepts a login while the upstream cannot be asked. The upstream must have
// accepted the same login before, less than auth_cache ago. Else it returns false.
func (h *handler) vouchFor(says upstream.SentLogin) bool {
	users := h.Env.Active.Load().Users
	at, known := h.service.accepted.AcceptedWithin(users.Cache, says.ClientLogin)
	if !known {
		return false
	}
	h.vouched = &vouched{SentLogin: says, at: at}
	h.admit(users.Accepted(says.User))
	return true
}

// stillVouchedFor asks the upstream again if its acceptance is too old. If that fails, it
// answers the command with an error, ends the session, and returns false.
func (h *handler) stillVouchedFor(now *config.Settings) bool {
	if h.vouched == nil || time.Since(h.vouched.at) < now.Users.Cache {
		return true
	}
	refusal := h.TryOpen()
	if refusal == "" {
		return true
	}
	h.ReplyError(refusal)
	h.End(session.UserGone)
	return false
}

// accept logs the client in as the user that the upstream has accepted.
func (h *handler) accept(says upstream.SentLogin) {
	users := h.Env.Active.Load().Users
	if users.Cache > 0 {
		h.service.accepted.Remember(says.ClientLogin, time.Now())
	}
	h.vouched = nil
	h.admit(users.Accepted(says.User))
}

// refused counts and logs a login that the upstream has refused.
func (h *handler) refused(says upstream.SentLogin, answer []byte) {
	if user, refused := h.service.accepted.Refused(says.ClientLogin, answer); refused && says.Command != nil {
		h.service.refuseLogin(user, h.RemoteAddr())
	}
}

// says returns the client's claim: the login that the proxy vouches for, or none.
func (h *handler) says() upstream.SentLogin {
	if h.vouched != nil {
		return h.vouched.SentLogin
	}
	return h.claims(nil)
}

// Login returns the login and the client state for a new upstream connection.
func (h *handler) Login(settings *config.Settings) *upstream.Login {
	l := h.client.Login()
	if settings.Users.AtUpstream {
		l.Claim = &upstream.Claim{Auth: h.says().Command, Sure: h.vouched != nil}
	} else {
		l.User, l.Password = settings.Upstream.User, settings.Upstream.Password
	}
	return l
}

// Opened is called when the upstream connection has been opened. known reports whether the
// upstream knows the client's user.
func (h *handler) Opened(by *upstream.Login, known bool) {
	if known && by.Claim != nil {
		h.accept(h.says())
	}
	h.hearing.Opened()
}

// Rejected is called when the upstream refuses the client's login, perhaps one that it
// accepted before.
func (h *handler) Rejected(answer wire.Error) {
	h.refused(h.says(), []byte(answer))
	if h.vouched.isNew {
		h.vouched.refused = true
	} else {
		h.End(session.UserGone)
	}
}

// unauthenticated returns the error for a client that is not logged in. If the upstream has the
// users and cannot be reached, that is the error. Else it is otherwise.
func (h *handler) unauthenticated(otherwise wire.Error) wire.Error {
	if h.Env.Active.Load().Users.AtUpstream && h.Upstream() == nil && h.DialError() != "" {
		return h.DialError()
	}
	return otherwise
}
