package config

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/route"
)

// Settings are the things that a reload may replace. One value never changes. So a caller that loads it
// for one command or one round sees one configuration, not parts of two.
type Settings struct {
	*Config
	Masters []endpoint.Endpoint // including embedded ones
	Users   *Accounts

	DialUpstream func(ctx context.Context) (net.Conn, error) // nil: there is no upstream
	Upstream     UpstreamLogin

	Router *route.Router
}

// UpstreamLogin is the proxy's own login at the upstream.
type UpstreamLogin struct {
	User, Password string
	DB             int
}

// NewSettings makes the settings for a configuration. upstream is nil if there is none.
func NewSettings(cfg *Config, upstream *endpoint.Endpoint, masters []endpoint.Endpoint, router *route.Router) *Settings {
	s := &Settings{
		Config:  cfg,
		Masters: masters,
		Users:   NewAccounts(cfg.Auth, cfg.AuthCache),
		Router:  router,
	}
	if upstream != nil {
		s.DialUpstream = upstream.Dial
		s.Upstream = UpstreamLogin{User: upstream.Username, Password: string(upstream.Password), DB: upstream.DB}
	}
	return s
}

// Active holds the current settings. Any goroutine may load them at any time.
type Active struct {
	mu  sync.Mutex // held by Replace
	now atomic.Pointer[Settings]
}

// NewActive makes an Active with s as the current settings.
func NewActive(s *Settings) *Active {
	f := &Active{}
	f.now.Store(s)
	return f
}

// Load returns the current settings. The caller must not modify them.
func (f *Active) Load() *Settings { return f.now.Load() }

// Replace replaces the settings by the result of change. change must not modify the old ones.
func (f *Active) Replace(change func(old Settings) Settings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := change(*f.now.Load())
	f.now.Store(&next)
}
