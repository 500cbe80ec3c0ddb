package config

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// Settings are what a reload of the configuration may change. They are made
// once and never change themselves, so whoever looks at them for one command
// or one round sees one configuration, not parts of two.
type Settings struct {
	Config  *Config
	Masters []endpoint.Endpoint // the embedded ones too

	Limits Limits
	Users  *Accounts

	DialUpstream func(ctx context.Context) (net.Conn, error) // nil: there is no upstream
	Upstream     UpstreamLogin

	Router *route.Router
}

// UpstreamLogin is the proxy's own way into the upstream.
type UpstreamLogin struct {
	User, Password string
	DB             int
}

// NewSettings makes of a configuration what is in force. upstream is nil if
// there is none.
func NewSettings(cfg *Config, upstream *endpoint.Endpoint, masters []endpoint.Endpoint, router *route.Router) *Settings {
	s := &Settings{
		Config:  cfg,
		Masters: masters,
		Limits:  cfg.Limits,
		Users:   NewAccounts(cfg.Auth, cfg.AuthCache),
		Router:  router,
	}
	if upstream != nil {
		s.DialUpstream = upstream.Dial
		s.Upstream = UpstreamLogin{User: upstream.Username, Password: string(upstream.Password), DB: upstream.DB}
	}
	return s
}

// Active holds the settings in force. Any goroutine may load them at any time.
type Active struct {
	mu  sync.Mutex // held by who replaces them
	now atomic.Pointer[Settings]
}

func NewActive(s *Settings) *Active {
	f := &Active{}
	f.now.Store(s)
	return f
}

func (f *Active) Load() *Settings { return f.now.Load() }

// Replace puts what change makes of the settings in their place. change must
// leave the old ones as they are.
func (f *Active) Replace(change func(old Settings) Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := change(*f.now.Load())
	f.now.Store(&next)
}
