package handler

import (
	"log/slog"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
)

// These values say whether limits.login_time applies to a session. After the first login it
// never applies again, because RESET does not end a connection.
const (
	loginUnknown  int32 = iota // it is not known yet whether the client must log in
	loginRequired              // the client must log in
	loginDone
)

// forgetLogin makes the client one that has sent no login.
func (h *Handler) forgetLogin() {
	h.cached = nil
	users := h.Env.Active.Load().Users
	h.admit(users.First())
	if !users.AtUpstream {
		h.requireLogin()
	}
}

// requireLogin begins login_time for a client that is not logged in.
func (h *Handler) requireLogin() {
	if h.account.Load() == nil {
		h.login.CompareAndSwap(loginUnknown, loginRequired)
	}
}

// admit sets the client's user. nil means that the client is not logged in.
func (h *Handler) admit(user *config.Account) {
	h.account.Store(user)
	h.SetAuthenticated(user != nil)
	if user != nil {
		h.login.Store(loginDone)
	}
}

// authenticate performs AUTH and returns its reply.
func (h *Handler) authenticate(args [][]byte) (reply string) {
	users, name := h.Env.Active.Load().Users, []byte(wire.DefaultUser)
	switch {
	case len(args) < 2:
		return string(wire.ErrArity("auth"))
	case len(args) > 3:
		return string(wire.ErrSyntax)
	case users.AtUpstream:
		return h.logInAtUpstream(args)
	case len(args) == 3:
		name = args[1]
	case users.First() != nil:
		return string(wire.ErrNoPassword)
	}
	user := users.Admit(name, args[len(args)-1])
	if user == nil {
		h.loginRefused(users.Known(name))
		return string(wire.ErrWrongPass)
	}
	h.admit(user)
	return wire.OK
}

// loginRefused counts and logs a refused login. user must be a known user's name, or a
// placeholder for every other name. The name that the client sent is never logged.
func (h *Handler) loginRefused(user string) {
	h.Env.Metrics.LoginRefused()
	if count, due := h.service.refusals.Due(time.Now()); due {
		h.Env.Log.Warn("login refused: wrong user name or password; correct it in the client, or under auth",
			slog.String("client", h.RemoteAddr().String()), slog.String("user", user), slog.Int("refused_since_last_line", count))
	}
}

// user returns the client's user by the active settings, nil if it is not logged in. If a reload has
// deleted the user, the session ends. If the reload has taken a right from it, an open transaction is
// aborted, so that EXEC cannot use that right.
func (h *Handler) user(now *config.Settings) *config.Account {
	known := h.account.Load()
	switch {
	case known == nil && !now.Users.AtUpstream && h.Upstream() != nil:
		h.End(session.UserGone) // the upstream had the users, and has not accepted this connection
		return nil
	case known == nil:
		user := now.Users.First()
		if user != nil {
			h.admit(user) // a password was needed when the client connected
		}
		return user
	case now.Users.Has(known):
		return known
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
func (h *Handler) refusedForUser(user *config.Account, name string, args [][]byte, to route.Route) bool {
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

// mayUseLocks tells whether the client's user may hear of locks.
func (h *Handler) mayUseLocks() bool {
	user := h.account.Load()
	return user != nil && user.May&config.RightLocks != 0
}

// Reloaded is called after new settings became active. It ends the session at once if the user has been
// deleted, as Redis does when users change, or if the client listens and its user may no longer hear
// something. Every other change is noticed at the client's next command. Any goroutine may call it.
func (h *Handler) Reloaded(now *config.Settings) {
	known := h.account.Load()
	if known == nil {
		return
	}
	user := now.Users.Successor(known)
	if user == nil || h.listens() && known.May&^user.May != 0 {
		h.End(session.Revoked)
	}
}

// listens reports whether the client may receive pushes: messages or events that are no
// replies. Any goroutine may call it.
func (h *Handler) listens() bool {
	up := h.Upstream()
	return h.listensToMasters() || up != nil && up.Listens()
}
