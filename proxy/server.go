package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/metrics"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/wire"
)

// refusalPatience bounds telling a client that there is no room.
const refusalPatience = time.Second

// serverConfig is all that sessions need. Functions may be called from many
// goroutines at once.
type serverConfig struct {
	current *config.Active // what a reload may change

	databases   func() int    // how many the upstream has; nil or 0: not known
	version     func() string // to be shown in HELLO and INFO; nil or "": not known
	redlockInfo func(dst []byte) []byte
	killScripts func(ctx context.Context) bool // SCRIPT KILL on every master; tells whether one was running

	locks   lockRunner
	scripts *scriptCache
	metrics *metrics.Metrics
	log     *slog.Logger

	subscribes pubsub.Subscribe // nil: the masters are not listened to
}

// A proxyServer owns the sessions of one or more listeners. shutdown ends it.
type proxyServer struct {
	cfg     serverConfig
	clock   conn.Clock
	memory  *conn.Budget
	running context.Context // of every session
	stop    context.CancelFunc
	nextID  atomic.Int64

	refusedLogins, failedHandshakes throttle
	accepted                        *acceptedLogins // by the upstream

	upstreamOpened atomic.Int64 // how often, for any session

	mu        sync.Mutex
	sessions  map[*session]struct{}
	listeners map[net.Listener]struct{}
	draining  bool
	active    sync.WaitGroup // sessions
	sweeping  sync.WaitGroup
}

func newServer(cfg serverConfig) *proxyServer {
	if cfg.version == nil {
		cfg.version = func() string { return "" }
	}
	if cfg.redlockInfo == nil {
		cfg.redlockInfo = func(dst []byte) []byte { return dst }
	}
	srv := &proxyServer{
		cfg:       cfg,
		sessions:  make(map[*session]struct{}),
		listeners: make(map[net.Listener]struct{}),
	}
	srv.accepted = newAcceptedLogins()
	srv.memory = conn.NewBudget(func() int64 { return srv.settings().Limits.Memory })
	srv.running, srv.stop = context.WithCancel(context.Background())
	srv.sweeping.Go(srv.sweepUntilStopped)
	return srv
}

// settings are those in force at this moment. Who needs several of them for
// one purpose asks once.
func (srv *proxyServer) settings() *config.Settings { return srv.cfg.current.Load() }

func (srv *proxyServer) shownVersion() string {
	if version := srv.cfg.version(); version != "" {
		return version
	}
	return fallbackVersion
}

func (srv *proxyServer) databaseCount() int {
	if srv.cfg.databases != nil {
		if n := srv.cfg.databases(); n > 0 {
			return n
		}
	}
	return config.DefaultDatabases
}

// serve accepts clients until shutdown, which closes the listener and makes
// serve return nil. Any other end of the listener is its error.
func (srv *proxyServer) serve(listener net.Listener) error {
	if !srv.keep(listener) {
		return listener.Close()
	}
	pause := time.Duration(0)
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			pause = 0
			srv.welcome(conn)
		case srv.isDraining():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Mostly that files are used up, which passes as clients leave.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			srv.cfg.log.Error("cannot accept a client", slog.Any("error", err), slog.Duration("pause", pause))
			select {
			case <-time.After(pause):
			case <-srv.running.Done():
			}
		}
	}
}

func (srv *proxyServer) keep(listener net.Listener) bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.draining {
		return false
	}
	srv.listeners[listener] = struct{}{}
	return true
}

func (srv *proxyServer) isDraining() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.draining
}

// welcome starts a session, which owns conn from then on, or refuses one.
func (srv *proxyServer) welcome(conn net.Conn) {
	srv.mu.Lock()
	full := len(srv.sessions) >= srv.settings().Limits.Clients
	if full || srv.draining {
		srv.mu.Unlock()
		if full {
			srv.cfg.metrics.LimitReached(string(config.LimitClients))
			tellFull(conn)
		}
		_ = conn.Close()
		return
	}
	s := newSession(srv, srv.nextID.Add(1), conn)
	srv.sessions[s] = struct{}{}
	srv.active.Add(1)
	srv.mu.Unlock()
	srv.cfg.metrics.ClientConnected()
	go func() {
		defer srv.active.Done()
		defer srv.cfg.metrics.ClientGone()
		defer srv.forget(s)
		s.serve()
	}()
}

// tellFull tells a client that there is no room. It must not hold up those who
// come next: a write into a new socket's empty buffer does not wait, but one
// behind TLS would wait for the handshake. Redis says nothing there either.
func tellFull(conn net.Conn) {
	if _, encrypted := conn.(*tls.Conn); encrypted {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(refusalPatience))
	_, _ = conn.Write([]byte(wire.ErrClientCap))
}

func (srv *proxyServer) forget(s *session) {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	delete(srv.sessions, s)
}

// shutdown stops accepting, lets every session finish the commands it has
// read, and returns when all have ended. When ctx ends first, they are cut
// off, and its error is returned.
func (srv *proxyServer) shutdown(ctx context.Context) error {
	srv.mu.Lock()
	srv.draining = true
	for listener := range srv.listeners {
		_ = listener.Close()
	}
	srv.mu.Unlock()
	for _, s := range srv.all() {
		s.draining.Store(true)
		s.sock.Wake()
	}
	ended := make(chan struct{})
	go func() {
		srv.active.Wait()
		close(ended)
	}()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	srv.stop()
	for _, s := range srv.all() {
		s.cutOff()
	}
	<-ended
	srv.sweeping.Wait()
	return err
}

func (srv *proxyServer) all() []*session {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	list := make([]*session, 0, len(srv.sessions))
	for s := range srv.sessions {
		list = append(list, s)
	}
	return list
}
