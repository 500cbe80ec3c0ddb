package handler

import (
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// user returns the client's user, nil if it is not logged in. If the user has lost a right, an
// open transaction is aborted, so that EXEC cannot use that right.
func (h *handler) user(now *config.Settings) *config.Account {
	user, lost := h.auth.Current(now)
	if lost != 0 && h.inTransaction() {
		h.abort("")
	}
	return user
}

// stillAccepted asks for the upstream's opinion of the user, if that is needed. If it cannot
// be asked, the client gets an error, the session ends, and the result is false.
func (h *handler) stillAccepted(now *config.Settings) bool {
	refusal := h.auth.Confirm(now)
	if refusal == "" {
		return true
	}
	h.ReplyError(refusal)
	h.UserGone()
	return false
}

// UserGone ends the session because its user is not accepted any more.
func (h *handler) UserGone() { h.End(session.UserGone) }

// refusedForUser refuses a command that the user may not send, and returns whether it did.
// In a transaction it also aborts the transaction, as Redis does.
func (h *handler) refusedForUser(user *config.Account, name string, args [][]byte, to route.Route) bool {
	if user == nil {
		return false
	}
	refusal := user.Forbids(h.Env.Active.Load().Router.Rules, name, args, to)
	if refusal == "" {
		return false
	}
	h.abort(refusal)
	return true
}

// Arrived, Login, Opened and Rejected are of session.Handler.

func (h *handler) Arrived() { h.auth.Arrived() }

func (h *handler) Login(settings *config.Settings) *upstream.Login {
	return h.auth.Login(h.client.Login(), settings)
}

func (h *handler) Opened(by *upstream.Login, known bool) {
	if known {
		h.auth.Opened(by)
	}
	h.pubsub.Opened()
}

func (h *handler) Rejected(answer wire.Error) { h.auth.Rejected(answer) }

// Revoked reports whether new settings end the session at once, as Redis ends connections
// when users change. They do if the user has been deleted. They also do if the client
// listens and its user may no longer hear something. Every other change is noticed at the
// client's next command.
func (h *handler) Revoked(now *config.Settings) bool {
	known := h.auth.Account()
	if known == nil {
		return false
	}
	user := now.Users.Successor(known)
	return user == nil || h.listens() && known.May&^user.May != 0
}

// listens reports whether the client may receive pushes: messages or events that are no
// replies. Any goroutine may call it.
func (h *handler) listens() bool {
	up := h.Upstream()
	return h.pubsub.Listens() || up != nil && up.Listens()
}

// Swept checks for changes that no command notices. mustLogIn reports whether the client has
// yet to log in. waits reports whether the client is silent because it waits for messages or holds a lock.
// Any goroutine may call it.
func (h *handler) Swept() (mustLogIn, waits bool) {
	return h.auth.MustLogIn(), h.pubsub.Swept() || h.holdsLeases()
}
