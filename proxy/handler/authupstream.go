package handler

import (
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// With auth: upstream, the upstream has the users. The client's login goes to the session's own
// upstream connection, which then belongs to that user. The connection is opened at the client's
// first bytes, because only the upstream knows whether a client without a login
// is its user default. While the upstream cannot be reached, the proxy accepts a login that
// the upstream accepted a while ago (auth_cache). The client is logged in by that until the connection
// can be opened.

// cachedLogin is a login that the upstream has accepted before, on another connection.
type cachedLogin struct {
	sentLogin
	at      time.Time
	isNew   bool // the client has just sent it
	refused bool // the upstream has refused it; only if isNew
}

// claims returns the claim in the arguments of AUTH. args is nil if the client has sent none.
func (h *Handler) claims(args [][]byte) sentLogin {
	return h.service.accepted.sent(h.Env.Active.Load().Config.Upstream.String(), args)
}

// arrived opens the upstream connection at the first bytes of a client, which is not logged in.
// It does so only if the upstream has the users.
func (h *Handler) arrived() {
	if h.Upstream() != nil || h.DialError() != "" ||
		!h.HasInput() || h.Ending() || !h.Env.Active.Load().Users.AtUpstream {
		return
	}
	if h.TryOpen() != "" && !h.Ending() {
		h.acceptCached(h.claims(nil))
	}
	h.requireLogin()
}

// logInAtUpstream lets the upstream decide about AUTH, and returns the reply.
func (h *Handler) logInAtUpstream(args [][]byte) string {
	says := h.claims(args)
	if h.Upstream() == nil {
		return h.openAs(says)
	}
	first := h.account.Load() == nil
	answer, ok := h.Ask(says.command)
	switch {
	case !ok:
		return ""
	case answer[0] != '+':
		reply := string(answer)
		h.refusedAtUpstream(says, answer)
		return reply
	}
	h.accept(says)
	if db := h.client.DB; first && db != 0 {
		if answer, ok = h.Ask(wire.SelectCommand(db)); ok && answer[0] != '+' {
			h.End(session.UserGone)
			return string(answer)
		}
	}
	return wire.OK
}

// openAs is logInAtUpstream if no connection is open. If the upstream refuses the login, the
// client's earlier claim stays.
func (h *Handler) openAs(says sentLogin) string {
	before := h.cached
	h.cached = &cachedLogin{sentLogin: says, isNew: true}
	asked := h.cached
	refusal := h.TryOpen()
	switch {
	case refusal == "":
		return wire.OK
	case asked.refused:
	case h.acceptCached(says):
		return wire.OK
	}
	h.cached = before
	return string(refusal)
}

// acceptCached accepts a login while the upstream cannot be asked. The upstream must have
// accepted the same login before, less than auth_cache ago. Else it returns false.
func (h *Handler) acceptCached(says sentLogin) bool {
	users := h.Env.Active.Load().Users
	at, known := h.service.accepted.acceptedAt(says.credentials)
	if !known || time.Since(at) >= users.Cache {
		return false
	}
	h.cached = &cachedLogin{sentLogin: says, at: at}
	h.admit(users.Accepted(says.user))
	return true
}

// stillAccepted asks the upstream again if its acceptance is too old. If it cannot be asked, the client
// gets an error, the session ends, and the result is false.
func (h *Handler) stillAccepted(now *config.Settings) bool {
	if h.cached == nil || time.Since(h.cached.at) < now.Users.Cache {
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
func (h *Handler) accept(says sentLogin) {
	users := h.Env.Active.Load().Users
	if users.Cache > 0 {
		h.service.accepted.remember(says.credentials, time.Now())
	}
	h.cached = nil
	h.admit(users.Accepted(says.user))
}

// refusedAtUpstream counts and logs a login that the upstream has refused.
func (h *Handler) refusedAtUpstream(says sentLogin, answer []byte) {
	if user, refused := h.service.accepted.refused(says.credentials, answer); refused && says.command != nil {
		h.loginRefused(user)
	}
}

// says returns the client's claim: the login that was accepted from the cache, or none.
func (h *Handler) says() sentLogin {
	if h.cached != nil {
		return h.cached.sentLogin
	}
	return h.claims(nil)
}

// TryOpen opens the client's own upstream connection if there is none. If it cannot, it returns an error.
func (h *Handler) TryOpen() (refusal wire.Error) {
	settings := h.Env.Active.Load()
	switch {
	case h.Upstream() != nil:
		return ""
	case settings.DialUpstream == nil:
		return wire.ErrUpstreamNone
	}
	login := h.newLogin(settings)
	known, failure := h.Open(settings.DialUpstream, login)
	switch {
	case failure == nil:
		h.plain = nil
		if known && login.Claim != nil {
			h.accept(h.says())
		}
		h.endIfOutdated()
		return ""
	case failure.Rejected:
		h.loginRejected([]byte(failure.Reply))
	}
	return failure.Reply
}

// newLogin is the login of a new upstream connection, with the state that the client has set.
func (h *Handler) newLogin(settings *config.Settings) *upstream.Login {
	l := h.client.Login()
	if h.listensToMasters() { // otherwise the proxy has not answered CLIENT TRACKING
		l.Tracking = h.tracking.Words()
	}
	if settings.Users.AtUpstream {
		l.Claim = &upstream.Claim{Auth: h.says().command, Sure: h.cached != nil}
	} else {
		l.User, l.Password = settings.Upstream.User, settings.Upstream.Password
	}
	return l
}

// loginRejected is called when the upstream refuses the client's login, perhaps one that it
// accepted before.
func (h *Handler) loginRejected(answer []byte) {
	h.refusedAtUpstream(h.says(), answer)
	if h.cached.isNew {
		h.cached.refused = true
	} else {
		h.End(session.UserGone)
	}
}

// unauthenticated returns the error for a client that is not logged in. If the upstream has the
// users and cannot be reached, that is the error. Else it is otherwise.
func (h *Handler) unauthenticated(otherwise wire.Error) wire.Error {
	if h.Env.Active.Load().Users.AtUpstream && h.Upstream() == nil && h.DialError() != "" {
		return h.DialError()
	}
	return otherwise
}
