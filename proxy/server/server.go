package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
)

// refusalPatience bounds the write that tells a client that there are too many.
const refusalPatience = time.Second

// A Server owns the sessions of one or more listeners. Shutdown ends it.
type Server struct {
	env     *session.Env
	service *handler.Service
	running context.Context // the parent of every session's context
	stop    context.CancelFunc

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	draining  bool
	accepting sync.WaitGroup // calls of Serve
	active    sync.WaitGroup // the sessions' goroutines
	sweeping  sync.WaitGroup
}

// New starts the sweep. service makes the Handler of each client. The caller must call Shutdown.
func New(env *session.Env, service *handler.Service) *Server {
	srv := &Server{
		env:       env,
		service:   service,
		listeners: make(map[net.Listener]struct{}),
	}
	srv.running, srv.stop = context.WithCancel(context.Background())
	srv.sweeping.Go(srv.sweepUntilStopped)
	return srv
}

// acceptLogPause is the shortest time between two log lines about clients, or admin requests, that
// cannot be accepted.
const acceptLogPause = time.Minute

// Serve accepts clients until StopAccepting or Shutdown closes the listener, and then returns
// nil. If the listener is closed in another way, Serve returns the error.
func (srv *Server) Serve(listener net.Listener) error {
	if !srv.keep(listener) {
		return listener.Close()
	}
	defer srv.accepting.Done()
	pause, failing := time.Duration(0), time.Time{}
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			pause = 0
			srv.Welcome(conn)
		case srv.isDraining():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Mostly the limit of open files is reached. That ends when clients leave.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			if now := time.Now(); now.Sub(failing) >= acceptLogPause {
				failing = now
				srv.env.Log.Error("cannot accept clients; raise the limit of open files (ulimit -n, LimitNOFILE=) if too many are open", slog.Any("error", err))
			}
			select {
			case <-time.After(pause):
			case <-srv.running.Done():
			}
		}
	}
}

func (srv *Server) keep(listener net.Listener) bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	if srv.draining {
		return false
	}
	srv.listeners[listener] = struct{}{}
	srv.accepting.Add(1)
	return true
}

func (srv *Server) isDraining() bool {
	srv.mu.Lock()
	defer srv.mu.Unlock()
	return srv.draining
}

// Welcome starts a session for conn, or refuses the client and closes conn. The caller must
// not use conn any more.
func (srv *Server) Welcome(conn net.Conn) {
	h := srv.service.NewHandler(srv.running, conn)
	if h == nil {
		srv.env.Metrics.LimitReached(string(config.LimitClients))
		tellFull(conn)
		_ = conn.Close()
		return
	}
	srv.active.Add(1)
	srv.env.Metrics.ClientConnected()
	h.Start(func() {
		srv.env.Metrics.ClientGone()
		srv.active.Done()
	})
}

// tellFull tells a client that there are too many clients. It must not delay the next
// client. A write into the empty buffer of a new socket does not wait, but a write behind
// TLS would wait for the handshake. Redis sends nothing over TLS either.
func tellFull(conn net.Conn) {
	if _, encrypted := conn.(*tls.Conn); encrypted {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(refusalPatience))
	_, _ = conn.Write([]byte(wire.ErrClientCap))
}

// StopAccepting closes the listeners. When it returns, every client that was accepted has a
// session, and no other client will get one. It may be called again.
func (srv *Server) StopAccepting() {
	srv.mu.Lock()
	srv.draining = true
	for listener := range srv.listeners {
		_ = listener.Close()
	}
	srv.mu.Unlock()
	srv.accepting.Wait()
}

// AwaitLeaving returns when every client has left by itself, or ctx ends. The caller has called
// StopAccepting.
func (srv *Server) AwaitLeaving(ctx context.Context) {
	select {
	case <-srv.allEnded():
	case <-ctx.Done():
	}
}

// allEnded returns a channel that is closed when all sessions have ended. No session may begin
// any more.
func (srv *Server) allEnded() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		srv.active.Wait()
		close(ended)
	}()
	return ended
}

// Shutdown stops accepting and lets every session finish the commands that it has read. It
// returns nil when all sessions have ended. If ctx ends first, Shutdown cuts off the
// remaining sessions and returns the error of ctx. It may be called again.
func (srv *Server) Shutdown(ctx context.Context) error {
	srv.StopAccepting()
	for _, s := range srv.service.All() {
		s.End(session.Draining)
	}
	ended := srv.allEnded()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	srv.stop()
	for _, s := range srv.service.All() {
		s.End(session.CutOff)
	}
	<-ended
	srv.sweeping.Wait()
	return err
}

// Reloaded tells every session that a reload has replaced the settings was by now.
func (srv *Server) Reloaded(now *config.Settings) {
	for _, s := range srv.service.All() {
		s.Reloaded(now)
	}
}
