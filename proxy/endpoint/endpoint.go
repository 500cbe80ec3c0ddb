package endpoint

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// go-redis writes failed dials to stderr in its own format; here every error
// comes back to who asked.
func init() { logging.Disable() }

// dialTimeout bounds a dial whose context has no nearer deadline.
const dialTimeout = 5 * time.Second

// Endpoint is one Redis server as its URL names it. It prints as its name, so
// that no format verb can show the password.
type Endpoint struct {
	Name     string // host:port, the socket's path, or NAME@host:port of the first Sentinel; for logs, metrics and errors
	Network  string // tcp, unix or one of the Sentinel schemes
	Address  string
	TLS      *TLS // nil: plain
	Username string
	Password Secret
	DB       int
	// sentinels say which server it is; nil: it is at its address.
	sentinels *sentinelGroup
}

func (e Endpoint) String() string   { return e.Name }
func (e Endpoint) GoString() string { return e.Name }

// Moves tells whether the endpoint may be another server at any time, because
// Sentinels say which it is.
func (e Endpoint) Moves() bool { return e.sentinels != nil }

// Dial opens a connection nothing was said on yet: AUTH, HELLO and SELECT are
// the caller's, as is closing it.
func (e Endpoint) Dial(ctx context.Context) (net.Conn, error) {
	if e.sentinels != nil {
		return e.dialMaster(ctx)
	}
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		// A peer that vanished without a FIN is noticed in about 30 s even on
		// a connection that only waits, such as one in BLPOP.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	if e.TLS == nil {
		return dialer.DialContext(ctx, e.Network, e.Address)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: e.TLS.Config()}).DialContext(ctx, e.Network, e.Address)
}

// Same tells whether two endpoints are one address as written. Two names of
// one server are told apart only by asking it for its run id.
func (e Endpoint) Same(other Endpoint) bool {
	if e.sentinels != nil && other.sentinels != nil {
		return e.sentinels.same(other.sentinels)
	}
	if e.Network == "tcp" && other.Network == "tcp" {
		return CanonicalAddress(e.Address) == CanonicalAddress(other.Address)
	}
	return e.Network == other.Network && e.Address == other.Address
}

// SameEntry tells whether a server is entered in the same way. Files that are
// renewed under the same name need no reload.
func (e Endpoint) SameEntry(other Endpoint) bool {
	if !e.sentinels.sameEntry(other.sentinels) || e.Username != other.Username || e.Password != other.Password || (e.TLS == nil) != (other.TLS == nil) {
		return false
	}
	return e.TLS == nil || e.TLS.from == other.TLS.from
}

// dialChecked is Dial for a library that trusts the server.
func (e Endpoint) dialChecked(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := e.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return checkReplies(conn), nil
}

// CanonicalAddress gives the spellings of one host:port one form, so that a
// master listed twice is seen.
func CanonicalAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip := net.ParseIP(host); ip != nil {
		host = ip.String()
	} else if host == "localhost" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// Options are go-redis settings for asking a server something off the
// hot path: one attempt, bounded by the caller's context, nothing added to
// what is asked.
func (e Endpoint) Options() *redis.Options {
	return &redis.Options{
		Addr:                     e.Name,
		Dialer:                   e.dialChecked,
		Username:                 e.Username,
		Password:                 string(e.Password),
		Protocol:                 2,
		MaxRetries:               -1,
		DialerRetries:            1,
		PoolSize:                 1,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
