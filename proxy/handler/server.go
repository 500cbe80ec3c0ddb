package handler

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
)

// refusalPatience bounds the write that tells a client that there are too many.
const refusalPatience = time.Second

// A door is how clients come in. Its mutex is never held while a session is called.
type door struct {
	running context.Context // the parent of every session's context
	stop    context.CancelFunc

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	draining  bool
	accepting sync.WaitGroup // calls of Serve
	active    sync.WaitGroup // the sessions' goroutines
	sweeping  sync.WaitGroup
}

func newDoor() *door {
	d := &door{listeners: map[net.Listener]struct{}{}}
	d.running, d.stop = context.WithCancel(context.Background())
	return d
}

// acceptLogPause is the shortest time between two log lines about clients, or admin requests, that
// cannot be accepted.
const acceptLogPause = time.Minute

// Serve accepts clients until StopAccepting or Shutdown closes the listener, and then returns
// nil. If the listener is closed in another way, Serve returns the error.
func (v *Service) Serve(listener net.Listener) error {
	if !v.door.keep(listener) {
		return listener.Close()
	}
	defer v.door.accepting.Done()
	pause, failing := time.Duration(0), time.Time{}
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			pause = 0
			v.Welcome(conn)
		case v.door.isDraining():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default:
			// Mostly the limit of open files is reached. That ends when clients leave.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			if now := time.Now(); now.Sub(failing) >= acceptLogPause {
				failing = now
				v.env.Log.Error("cannot accept clients; raise the limit of open files (ulimit -n, LimitNOFILE=) if too many are open", slog.Any("error", err))
			}
			select {
			case <-time.After(pause):
			case <-v.door.running.Done():
			}
		}
	}
}

func (d *door) keep(listener net.Listener) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return false
	}
	d.listeners[listener] = struct{}{}
	d.accepting.Add(1)
	return true
}

func (d *door) isDraining() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.draining
}

// Welcome starts a session for conn, or refuses the client and closes conn. The caller must
// not use conn any more.
func (v *Service) Welcome(conn net.Conn) {
	h := v.newClient(v.door.running, conn)
	if h == nil {
		v.env.Metrics.LimitReached(string(config.LimitClients))
		tellFull(conn)
		_ = conn.Close()
		return
	}
	v.door.active.Add(1)
	v.env.Metrics.ClientConnected()
	h.start()
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
func (v *Service) StopAccepting() {
	v.door.mu.Lock()
	v.door.draining = true
	for listener := range v.door.listeners {
		_ = listener.Close()
	}
	v.door.mu.Unlock()
	v.door.accepting.Wait()
}

// AwaitLeaving returns when every client has left by itself, or ctx ends. The caller has called
// StopAccepting.
func (v *Service) AwaitLeaving(ctx context.Context) {
	select {
	case <-v.door.allEnded():
	case <-ctx.Done():
	}
}

// allEnded returns a channel that is closed when all sessions have ended. No session may begin
// any more.
func (d *door) allEnded() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		d.active.Wait()
		close(ended)
	}()
	return ended
}

// Shutdown stops accepting and lets every session finish the commands that it has read. It
// returns nil when all sessions have ended. If ctx ends first, Shutdown cuts off the
// remaining sessions and returns the error of ctx. It may be called again.
func (v *Service) Shutdown(ctx context.Context) error {
	v.StopAccepting()
	for _, s := range v.All() {
		s.End(session.Draining)
	}
	ended := v.door.allEnded()
	var err error
	select {
	case <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	v.door.stop()
	for _, s := range v.All() {
		s.End(session.CutOff)
	}
	<-ended
	v.door.sweeping.Wait()
	return err
}

// Reloaded tells every session that a reload has replaced the settings was by now.
func (v *Service) Reloaded(now *config.Settings) {
	for _, s := range v.All() {
		s.Reloaded(now)
	}
}
