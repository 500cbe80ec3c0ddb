package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// dialTimeout bounds a dial whose context has no nearer deadline.
const dialTimeout = 5 * time.Second

// endpoint is one Redis server as its URL names it. It prints as its name, so
// that no format verb can show the password.
type endpoint struct {
	name     string // host:port, the socket's path, or NAME@host:port of the first Sentinel; for logs, metrics and errors
	network  string // tcp, unix or one of the Sentinel schemes
	address  string
	tls      *tlsFiles // nil: plain
	username string
	password secret
	db       int
	// sentinels say which server it is; nil: it is at its address.
	sentinels *sentinelGroup
}

func (e endpoint) String() string   { return e.name }
func (e endpoint) GoString() string { return e.name }

// moves tells whether the endpoint may be another server at any time, because
// Sentinels say which it is.
func (e endpoint) moves() bool { return e.sentinels != nil }

// dial opens a connection nothing was said on yet: AUTH, HELLO and SELECT are
// the caller's, as is closing it.
func (e endpoint) dial(ctx context.Context) (net.Conn, error) {
	if e.sentinels != nil {
		return e.dialMaster(ctx)
	}
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		// A peer that vanished without a FIN is noticed in about 30 s even on
		// a connection that only waits, such as one in BLPOP.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	if e.tls == nil {
		return dialer.DialContext(ctx, e.network, e.address)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: e.tls.config()}).DialContext(ctx, e.network, e.address)
}

// same tells whether two endpoints are one address as written. Two names of
// one server are told apart only by asking it for its run id.
func (e endpoint) same(other endpoint) bool {
	if e.sentinels != nil && other.sentinels != nil {
		return e.sentinels.same(other.sentinels)
	}
	if e.network == "tcp" && other.network == "tcp" {
		return canonicalAddress(e.address) == canonicalAddress(other.address)
	}
	return e.network == other.network && e.address == other.address
}

// sameEntry tells whether a server is entered in the same way. Files that are
// renewed under the same name need no reload.
func (e endpoint) sameEntry(other endpoint) bool {
	if !e.sentinels.sameEntry(other.sentinels) || e.username != other.username || e.password != other.password || (e.tls == nil) != (other.tls == nil) {
		return false
	}
	return e.tls == nil || e.tls.from == other.tls.from
}

// dialChecked is dial for a library that trusts the server.
func (e endpoint) dialChecked(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	return checkReplies(conn), nil
}

// canonicalAddress gives the spellings of one host:port one form, so that a
// master listed twice is seen.
func canonicalAddress(address string) string {
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

// clientOptions are go-redis settings for asking a server something off the
// hot path: one attempt, bounded by the caller's context, nothing added to
// what is asked.
func (e endpoint) clientOptions() *redis.Options {
	return &redis.Options{
		Addr:                     e.name,
		Dialer:                   e.dialChecked,
		Username:                 e.username,
		Password:                 string(e.password),
		Protocol:                 2,
		MaxRetries:               -1,
		DialerRetries:            1,
		PoolSize:                 1,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
