package auth

import (
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// A Service judges the logins of all clients of a process. Any number of goroutines may use
// it.
type Service struct {
	active   *config.Active
	metrics  *metrics.Metrics
	log      *slog.Logger
	refusals metrics.Throttle
	accepted *acceptedLogins
}

// New makes the Service of a process.
func New(active *config.Active, meter *metrics.Metrics, log *slog.Logger) *Service {
	return &Service{active: active, metrics: meter, log: log, accepted: newAcceptedLogins()}
}

// refuse counts and logs a refused login. user must be a known user's name, or a
// placeholder for every other name. The name that the client sent is never logged.
func (v *Service) refuse(user string, from net.Addr) {
	v.metrics.LoginRefused()
	if count, due := v.refusals.Due(time.Now()); due {
		v.log.Warn("login refused: wrong user name or password",
			slog.String("client", from.String()), slog.String("user", user), slog.Int("refused_since_last_line", count))
	}
}

// A Session is what a Client needs of its session. All but UserGone are session.Session's.
type Session interface {
	RemoteAddr() net.Addr
	SetAuthenticated(yes bool)
	HasInput() bool
	Ending() bool
	Upstream() *upstream.Conn
	DialError() wire.Error
	TryOpen() (refusal wire.Error)
	Ask(command []byte) (reply []byte, ok bool)
	// UserGone ends the session, because its user is not accepted any more.
	UserGone()
}

// A Client knows which user a client is. Its session's goroutine calls its methods, unless
// they say otherwise.
type Client struct {
	*Service
	session Session

	account atomic.Pointer[config.Account] // nil: not logged in
	login   atomic.Int32                   // loginUnknown, loginRequired or loginDone
	vouched *vouched                       // an earlier login that the upstream has yet to confirm
}

// These values say whether limits.login_time applies to a session. After the first login it
// never applies again, because RESET does not end a connection.
const (
	loginUnknown  int32 = iota // it is not known yet whether the client must log in
	loginRequired              // the client must log in
	loginDone
)

// NewClient makes the Client of a session whose client has sent nothing yet.
func (v *Service) NewClient(session Session) *Client {
	c := &Client{Service: v, session: session}
	c.Reset()
	if !v.active.Load().Users.AtUpstream {
		c.require()
	}
	return c
}

// Reset makes the client one that has sent no login.
func (c *Client) Reset() {
	c.vouched = nil
	c.admit(c.active.Load().Users.First())
}

// require begins login_time for a client that is not logged in.
func (c *Client) require() {
	if c.account.Load() == nil {
		c.login.CompareAndSwap(loginUnknown, loginRequired)
	}
}

// MustLogIn tells whether limits.login_time applies. Any goroutine may call it.
func (c *Client) MustLogIn() bool { return c.login.Load() == loginRequired }

// Account is the client's user, nil if it is not logged in. Any goroutine may call it.
func (c *Client) Account() *config.Account { return c.account.Load() }

// admit sets the client's user. nil means that the client is not logged in.
func (c *Client) admit(user *config.Account) {
	c.account.Store(user)
	c.session.SetAuthenticated(user != nil)
	if user != nil {
		c.login.Store(loginDone)
	}
}

// Authenticate performs AUTH and returns its reply. db is the client's database.
func (c *Client) Authenticate(args [][]byte, db int) (reply string) {
	users, name := c.active.Load().Users, []byte(wire.DefaultUser)
	switch {
	case len(args) < 2:
		return string(wire.ErrArity("auth"))
	case len(args) > 3:
		return string(wire.ErrSyntax)
	case users.AtUpstream:
		return c.logInAtUpstream(args, db)
	case len(args) == 3:
		name = args[1]
	case users.First() != nil:
		return string(wire.ErrNoPassword)
	}
	user := users.Admit(name, args[len(args)-1])
	if user == nil {
		c.refuse(users.Known(name), c.session.RemoteAddr())
		return string(wire.ErrWrongPass)
	}
	c.admit(user)
	return wire.OK
}

// Current returns the client's user by the active settings, nil if it is not logged in, and
// the rights that a reload has taken from it. If a reload has deleted the user, Current ends
// the session.
func (c *Client) Current(now *config.Settings) (user *config.Account, lost config.Rights) {
	known := c.account.Load()
	switch {
	case known == nil && !now.Users.AtUpstream && c.session.Upstream() != nil:
		c.session.UserGone() // the upstream had the users, and has not accepted this connection
	case known == nil:
		if user = now.Users.First(); user != nil {
			c.admit(user) // a password was needed when the client connected
		}
	case now.Users.Has(known):
		return known, 0
	default:
		if user = now.Users.Successor(known); user == nil {
			c.session.UserGone()
			return nil, 0
		}
		c.account.Store(user)
		lost = known.May &^ user.May
	}
	return user, lost
}
