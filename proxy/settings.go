package proxy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// settings are what a reload of the configuration may change. They are made
// once and never change themselves, so whoever looks at them for one command
// or one round sees one configuration, not parts of two.
type settings struct {
	config  *Config
	masters []endpoint.Endpoint // the embedded ones too

	limits Limits
	users  *accounts

	dialUpstream func(ctx context.Context) (net.Conn, error) // nil: there is no upstream
	upstream     upstreamLogin

	router *route.Router
}

// upstreamLogin is the proxy's own way into the upstream.
type upstreamLogin struct {
	user, password string
	db             int
}

// newSettings makes of a configuration what is in force. upstream is nil if
// there is none.
func newSettings(cfg *Config, upstream *endpoint.Endpoint, masters []endpoint.Endpoint, router *route.Router) *settings {
	s := &settings{
		config:  cfg,
		masters: masters,
		limits:  cfg.Limits,
		users:   newAccounts(cfg.Auth, cfg.AuthCache),
		router:  router,
	}
	if upstream != nil {
		s.dialUpstream = upstream.Dial
		s.upstream = upstreamLogin{user: upstream.Username, password: string(upstream.Password), db: upstream.DB}
	}
	return s
}

// inForce holds the settings in force. Any goroutine may load them at any time.
type inForce struct {
	mu  sync.Mutex // held by who replaces them
	now atomic.Pointer[settings]
}

func newInForce(s *settings) *inForce {
	f := &inForce{}
	f.now.Store(s)
	return f
}

func (f *inForce) load() *settings { return f.now.Load() }

// replace puts what change makes of the settings in their place. change must
// leave the old ones as they are.
func (f *inForce) replace(change func(old settings) settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := change(*f.now.Load())
	f.now.Store(&next)
}
