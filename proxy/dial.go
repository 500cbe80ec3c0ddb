package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
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
	name     string // host:port or the socket's path; for logs, metrics and errors
	network  string // tcp or unix
	address  string
	tls      *tls.Config // nil: plain
	username string
	password string
	db       int
}

func (e endpoint) String() string   { return e.name }
func (e endpoint) GoString() string { return e.name }

// dial opens a connection nothing was said on yet: AUTH, HELLO and SELECT are
// the caller's, as is closing it.
func (e endpoint) dial(ctx context.Context) (net.Conn, error) {
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		// A peer that vanished without a FIN is noticed in about 30 s even on
		// a connection that only waits, such as one in BLPOP.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	if e.tls == nil {
		return dialer.DialContext(ctx, e.network, e.address)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: e.tls}).DialContext(ctx, e.network, e.address)
}

// same tells whether two endpoints are one address as written. Two names of
// one server are told apart only by asking it for its run id.
func (e endpoint) same(other endpoint) bool {
	if e.network == "tcp" && other.network == "tcp" {
		return canonicalAddress(e.address) == canonicalAddress(other.address)
	}
	return e.network == other.network && e.address == other.address
}

// parseEndpoint reads a server URL. Its errors never quote the URL: whatever
// is wrong with it, a part of the password may stand at the wrong place.
func parseEndpoint(text string) (endpoint, error) {
	u, err := url.Parse(text)
	if err != nil {
		return endpoint{}, errors.New("not a URL; allowed: " + urlForms +
			" (in user and password write / as %2F, # as %23, ? as %3F, % as %25)")
	}
	switch u.Scheme {
	case "redis", "rediss":
		if u.Hostname() == "" {
			return endpoint{}, errors.New("the URL names no host; allowed: " + urlForms)
		}
		if path := strings.Trim(u.Path, "/"); path != "" && !isDatabase(path) {
			return endpoint{}, errors.New("after the host only a database number may stand, as in redis://host:6379/3")
		}
	case "unix":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.Path == "/" {
			return endpoint{}, errors.New("a unix URL is unix:///path/to/socket, or unix://user:password@/path/to/socket")
		}
	default:
		return endpoint{}, errors.New("not a server URL; allowed: " + urlForms)
	}
	if u.Fragment != "" {
		return endpoint{}, errors.New("the URL has a # in it; write # in a password as %23")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return endpoint{}, errors.New("the URL's port is not from 1 to 65535")
		}
	}
	query := u.Query()
	for option := range query {
		if option != "db" && !(option == "skip_verify" && u.Scheme == "rediss") {
			return endpoint{}, errors.New("the URL has an unknown option; allowed after ?: db, and skip_verify with rediss (write ? in a password as %3F)")
		}
	}
	if db := query.Get("db"); db != "" && !isDatabase(db) {
		return endpoint{}, errors.New("the URL's db option is not a database number")
	}
	options, err := redis.ParseURL(text)
	if err != nil {
		return endpoint{}, errors.New("not a server URL; allowed: " + urlForms)
	}
	return endpoint{
		name: options.Addr, network: options.Network, address: options.Addr, tls: options.TLSConfig,
		username: options.Username, password: options.Password, db: options.DB,
	}, nil
}

const urlForms = "redis://[user:password@]host[:port], rediss:// for TLS, unix:///path"

func isDatabase(text string) bool {
	n, err := strconv.ParseUint(text, 10, 31)
	return err == nil && strconv.FormatUint(n, 10) == text
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
		Dialer:                   func(ctx context.Context, _, _ string) (net.Conn, error) { return e.dial(ctx) },
		Username:                 e.username,
		Password:                 e.password,
		Protocol:                 2,
		MaxRetries:               -1,
		DialerRetries:            1,
		PoolSize:                 1,
		ContextTimeoutEnabled:    true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}
