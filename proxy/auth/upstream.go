package auth

import (
	"time"

	"redlock-proxy/proxy/config"
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
	sentLogin
	at      time.Time
	isNew   bool // the client has just sent it
	refused bool // the upstream has refused it; only if isNew
}

// claims returns the claim in the arguments of AUTH. args is nil if the client has sent none.
func (c *Client) claims(args [][]byte) sentLogin {
	return c.accepted.sent(c.active.Load().Config.Upstream.String(), args)
}

// Arrived opens the upstream connection at the first bytes of a client that is not logged in.
// It does so only if the upstream has the users.
func (c *Client) Arrived() {
	if c.account.Load() != nil || c.session.Upstream() != nil || c.session.DialError() != "" ||
		!c.session.HasInput() || !c.active.Load().Users.AtUpstream {
		return
	}
	if c.session.TryOpen() != "" && !c.session.Ending() {
		c.vouchFor(c.claims(nil))
	}
	c.require()
}

// logInAtUpstream lets the upstream decide about AUTH, and returns the reply.
func (c *Client) logInAtUpstream(args [][]byte, db int) string {
	says := c.claims(args)
	if c.session.Upstream() == nil {
		return c.openAs(says)
	}
	first := c.account.Load() == nil
	answer, ok := c.session.Ask(says.command)
	switch {
	case !ok:
		return ""
	case answer[0] != '+':
		reply := string(answer)
		c.refused(says, answer)
		return reply
	}
	c.accept(says)
	if first && db != 0 {
		if answer, ok = c.session.Ask(wire.SelectCommand(db)); ok && answer[0] != '+' {
			c.session.UserGone()
			return string(answer)
		}
	}
	return wire.OK
}

// openAs is logInAtUpstream if no connection is open. If the upstream refuses the login, the
// client's earlier claim stays.
func (c *Client) openAs(says sentLogin) string {
	before := c.vouched
	c.vouched = &vouched{sentLogin: says, isNew: true}
	asked := c.vouched
	refusal := c.session.TryOpen()
	switch {
	case refusal == "":
		return wire.OK
	case asked.refused:
	case c.vouchFor(says):
		return wire.OK
	}
	c.vouched = before
	return string(refusal)
}

// vouchFor accepts a login while the upstream cannot be asked. The upstream must have
// accepted the same login before, less than auth_cache ago. Else it returns false.
func (c *Client) vouchFor(says sentLogin) bool {
	users := c.active.Load().Users
	at, known := c.accepted.acceptedAt(says.credentials)
	if !known || time.Since(at) >= users.Cache {
		return false
	}
	c.vouched = &vouched{sentLogin: says, at: at}
	c.admit(users.Accepted(says.user))
	return true
}

// Confirm asks the upstream again if its acceptance is too old. If that fails, it returns an
// error, and the session must end.
func (c *Client) Confirm(now *config.Settings) (refusal wire.Error) {
	if c.vouched == nil || time.Since(c.vouched.at) < now.Users.Cache {
		return ""
	}
	return c.session.TryOpen()
}

// accept logs the client in as the user that the upstream has accepted.
func (c *Client) accept(says sentLogin) {
	users := c.active.Load().Users
	if users.Cache > 0 {
		c.accepted.remember(says.credentials, time.Now())
	}
	c.vouched = nil
	c.admit(users.Accepted(says.user))
}

// refused counts and logs a login that the upstream has refused.
func (c *Client) refused(says sentLogin, answer []byte) {
	if user, refused := c.accepted.refused(says.credentials, answer); refused && says.command != nil {
		c.refuse(user, c.session.RemoteAddr())
	}
}

// says returns the client's claim: the login that the proxy vouches for, or none.
func (c *Client) says() sentLogin {
	if c.vouched != nil {
		return c.vouched.sentLogin
	}
	return c.claims(nil)
}

// Login adds the login to the state that a new upstream connection gets.
func (c *Client) Login(l *upstream.Login, settings *config.Settings) *upstream.Login {
	if settings.Users.AtUpstream {
		l.Claim = &upstream.Claim{Auth: c.says().command, Sure: c.vouched != nil}
	} else {
		l.User, l.Password = settings.Upstream.User, settings.Upstream.Password
	}
	return l
}

// Opened is called when the upstream knows the user of the login with which its connection
// was opened.
func (c *Client) Opened(by *upstream.Login) {
	if by.Claim != nil {
		c.accept(c.says())
	}
}

// Rejected is called when the upstream refuses the client's login, perhaps one that it
// accepted before.
func (c *Client) Rejected(answer wire.Error) {
	c.refused(c.says(), []byte(answer))
	if c.vouched.isNew {
		c.vouched.refused = true
	} else {
		c.session.UserGone()
	}
}

// Unauthenticated returns the error for a client that is not logged in. If the upstream has the
// users and cannot be reached, that is the error. Else it is otherwise.
func (c *Client) Unauthenticated(otherwise wire.Error) wire.Error {
	if c.active.Load().Users.AtUpstream && c.session.Upstream() == nil && c.session.DialError() != "" {
		return c.session.DialError()
	}
	return otherwise
}
