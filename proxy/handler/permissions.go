package handler

import (
	"sync/atomic"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
)

// user returns the session's user by the active settings, nil if the client is not logged
// in. If a reload has deleted the user, the session ends. If the user has lost a right, an
// open transaction is aborted, so that EXEC cannot use that right.
func (h *handler) user(now *config.Settings) *config.Account {
	known := h.account.Load()
	if known != nil && now.Users.Has(known) {
		return known
	}
	if known == nil {
		if !now.Users.AtUpstream && h.Upstream() != nil {
			h.End(session.UserGone) // the upstream had the users, and has not accepted this connection
			return nil
		}
		if first := now.Users.First(); first != nil {
			h.admit(first) // a password was needed when the client connected
			return first
		}
		return nil
	}
	user := now.Users.Successor(known)
	if user == nil {
		h.End(session.UserGone)
		return nil
	}
	h.account.Store(user)
	if known.May&^user.May != 0 && h.inTransaction() {
		h.abort("")
	}
	return user
}

// refusedForUser refuses a command that the user may not send, and returns whether it did.
// In a transaction it also aborts the transaction, as Redis does.
func (h *handler) refusedForUser(user *config.Account, name string, args [][]byte, to route.Route) bool {
	if user == nil {
		return false
	}
	all := h.Env.Active.Load().Router.Rules
	refusal := user.Forbids(h.own.For(user.Name, all), all, h.database(), name, args, to)
	if refusal == "" {
		return false
	}
	h.abort(refusal)
	return true
}

// Revoked reports whether new settings end the session at once, as Redis ends connections
// when users change. They do if the user has been deleted. They also do if the client
// listens and its user may no longer hear something. Every other change is noticed at the
// client's next command.
func (h *handler) Revoked(was, now *config.Settings) bool {
	known := h.account.Load()
	if known == nil {
		return false
	}
	user := now.Users.Successor(known)
	return user == nil || h.listens() && (known.May&^user.May != 0 || now.Router.Rules.DeniesMore(was.Router.Rules, user.Name))
}

// listens reports whether the client may receive pushes: messages or events that are no
// replies. Any goroutine may call it.
func (h *handler) listens() bool {
	up := h.Upstream()
	return h.hearing.Listens() || up != nil && up.Listens()
}

// identity says which user the client is.
type identity struct {
	account atomic.Pointer[config.Account] // nil: not logged in. Only the session sets it
	login   atomic.Int32                   // loginUnknown, loginRequired or loginDone
	vouched *vouched                       // an earlier login that the upstream has yet to confirm
	own     route.UserRules
}

// Swept checks for changes that no command notices. mustLogIn reports whether the client has
// yet to log in. waits reports whether the client is silent because it waits for messages or holds a lock.
// Any goroutine may call it.
func (h *handler) Swept() (mustLogIn, waits bool) {
	return h.login.Load() == loginRequired, h.hearing.Swept() || h.holdsLeases()
}
