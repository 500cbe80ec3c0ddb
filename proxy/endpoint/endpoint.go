package endpoint

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// go-redis writes failed dials to stderr in its own format. Here every error goes back
// to the caller.
func init() { logging.Disable() }

// dialTimeout bounds a dial whose context has no earlier deadline.
const dialTimeout = 5 * time.Second

// Endpoint is one Redis server as its URL describes it. It prints as its name, so no
// format verb can show the password.
type Endpoint struct {
	// Name is for logs, metrics and errors: host:port, the socket's path, or NAME@host:port
	// of the first Sentinel.
	Name     string
	Network  string // tcp, unix or one of the Sentinel schemes
	Address  string
	TLS      *TLS // nil for a plain connection
	Username string
	Password Secret
	DB       int
	// sentinels know which server it is. If nil, Address does.
	sentinels *sentinelGroup
}

func (e Endpoint) String() string   { return e.Name }
func (e Endpoint) GoString() string { return e.Name }

// Moves tells whether the endpoint can become another server at any time, because
// Sentinels decide which one it is.
func (e Endpoint) Moves() bool { return e.sentinels != nil }

// Dial opens a connection and sends nothing on it. The caller sends AUTH, HELLO and
// SELECT, and closes it.
func (e Endpoint) Dial(ctx context.Context) (net.Conn, error) {
	if e.sentinels != nil {
		return e.dialMaster(ctx)
	}
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		// Keep-alive notices a vanished peer in about 30 s, even on a connection that only
		// waits, such as one in BLPOP.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	if e.TLS == nil {
		return dialer.DialContext(ctx, e.Network, e.Address)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: e.TLS.Config()}).DialContext(ctx, e.Network, e.Address)
}

// Same tells whether two endpoints have the same address as written. Two different names
// of one server can be recognised only by the server's run id.
func (e Endpoint) Same(other Endpoint) bool {
	if e.sentinels != nil && other.sentinels != nil {
		return e.sentinels.same(other.sentinels)
	}
	if e.Network == "tcp" && other.Network == "tcp" {
		return CanonicalAddress(e.Address) == CanonicalAddress(other.Address)
	}
	return e.Network == other.Network && e.Address == other.Address
}

// SameEntry tells whether two configurations enter a server in the same way. Files that
// are renewed under the same name need no reload.
func (e Endpoint) SameEntry(other Endpoint) bool {
	if !e.sentinels.sameEntry(other.sentinels) || e.Username != other.Username || e.Password != other.Password || (e.TLS == nil) != (other.TLS == nil) {
		return false
	}
	return e.TLS == nil || e.TLS.from == other.TLS.from
}

// dialChecked is Dial for go-redis, which trusts the server's replies.
func (e Endpoint) dialChecked(ctx context.Context, _, _ string) (net.Conn, error) {
	conn, err := e.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return checkReplies(conn), nil
}

// CanonicalAddress gives all spellings of one host:port the same form, so that a master
// listed twice is noticed.
func CanonicalAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return net.JoinHostPort(CanonicalHost(host), port)
}

// CanonicalHost gives all spellings of one host the same form: a name in lower case and without a final
// dot, or an IP address without brackets. localhost is one.
func CanonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.Unmap().String()
	}
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// Options are go-redis settings for a question off the hot path: one attempt, bounded by
// the caller's context, with no commands of the library's own.
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
