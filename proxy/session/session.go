package session

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/loop"
)

// coalesce is the number of bytes of replies that may wait for the rest of a pipeline.
const coalesce = 64 << 10

// mostAppended is the most bytes of replies that are sent without leaving the loop.
const mostAppended = 4 * coalesce

// mostCommands is the number of commands that a session performs before it yields to others.
const mostCommands = 256

// A Session is one client's connection. It reads commands, and sends replies in the order of the
// commands. Nothing of it outlives Release.
type Session struct {
	Env     *Env
	id      int64
	running context.Context // until the process ends
	client  net.Conn        // until it has begun; then nil
	in      input
	limited *config.Settings // whose limits the input has
	out     *upstream.Writer // nil: it has not begun
	ctx     context.Context  // ends when the client has gone
	gone    context.CancelFunc
	busy    busyTimer
	task    *loop.Task      // runs the session; nil: it has not begun
	taken   int             // commands since the session gave way to others
	parked  context.Context // ctx with the task, once a wait was Parked

	local, remote net.Addr
	sock          atomic.Pointer[loop.Socket] // nil: it has not begun
	names         atomic.Pointer[Names]       // nil: the masters are asked for none

	ended   atomic.Uint32 // a bit for each Reason
	left    atomic.Bool   // the client sends or reads no more
	arrived time.Time     // when the client connected

	pending []byte   // replies to write before anything else
	asked   []*Asked // commands that the masters are asked, oldest first; their replies follow pending
	unasked []*Asked // to be used again
	silent  bool     // the client wants no replies to the current command

	up        *upstream.Member // has the connections to the upstream
	blocking  atomic.Bool      // a forwarded command may wait for other clients
	forwarded int              // commands that are not sent yet
	shares    *config.Settings // lead to the connection that it shares, or shared last
	dialError wire.Error       // of the last dial; "": it succeeded, or what shares its error is over
	dialed    int64            // the bytes of the input that had come when it failed
}

// New makes the session of a client. It owns the connection, and ends with running.
func New(running context.Context, env *Env, id int64, client net.Conn) *Session {
	s := &Session{Env: env, id: id, running: running, client: client, arrived: time.Now()}
	s.local, s.remote = client.LocalAddr(), client.RemoteAddr()
	s.in.budget, s.in.busy, s.busy.session = env.Budget, &s.busy, s
	s.in.decoder = *wire.NewDecoder(wire.RedisLimits)
	s.in.decoder.Charge = env.Budget.charge
	s.up = upstream.NewMember(upstream.Options{
		Owner: owner{s}, Pool: env.Upstream, Captures: func() int64 { return env.Active.Load().Limits.Bulk + SmallBuffer },
	})
	s.ctx, s.gone = context.WithCancel(running)
	return s
}

// ID is unique in the process. Context ends when the client leaves.
func (s *Session) ID() int64                { return s.id }
func (s *Session) Context() context.Context { return s.ctx }

// Writer is the writing side of the client's connection.
func (s *Session) Writer() *upstream.Writer { return s.out }

// DialError is the error of the last dial, for commands that had come when it failed. It is "" if
// there is none. A later command dials anew, because its client may know the error already.
func (s *Session) DialError() wire.Error {
	if s.in.filled() > s.dialed {
		s.dialError = ""
	}
	return s.dialError
}

// Mute decides whether the current command's replies are kept from the client. Muted tells.
func (s *Session) Mute(silent bool) { s.silent = silent }
func (s *Session) Muted() bool      { return s.silent }

// MayBlock says that a forwarded command may wait for other clients.
func (s *Session) MayBlock() { s.blocking.Store(true) }

// RemoteAddr is the client's address. Any goroutine may call it.
func (s *Session) RemoteAddr() net.Addr { return s.remote }

// LocalAddr is the address to which the client connected. Any goroutine may call it.
func (s *Session) LocalAddr() net.Addr { return s.local }

// Silent is the time since bytes last came from the client. Any goroutine may call it.
func (s *Session) Silent() time.Duration {
	if sock := s.sock.Load(); sock != nil {
		return sock.Silent(time.Now())
	}
	return time.Since(s.arrived)
}

// WatchPeer makes the kernel end the connection soon if the client's machine is gone.
func (s *Session) WatchPeer() { s.sock.Load().WatchPeer() }

// HasInput tells whether there are unread bytes, such as an unfinished command.
func (s *Session) HasInput() bool { return len(s.in.unread()) > 0 }

// SetAuthenticated allows the longer commands of an authenticated client.
func (s *Session) SetAuthenticated(yes bool) {
	s.in.decoder.SetAuthenticated(yes)
	s.in.trusted = yes
}

// Begin is called first in each turn of the session's task. It returns false if the client cannot be
// served.
func (s *Session) Begin(task *loop.Task) bool {
	if s.task == nil && !s.adopt(task) {
		return false
	}
	s.endReading()
	return true
}

// adopt has the loop read the client, after the TLS handshake. It returns false if that failed.
func (s *Session) adopt(task *loop.Task) bool {
	s.task = task
	if !s.handshakeTLS() {
		return false
	}
	sock, err := s.Env.Loop.Adopt(s.client, &s.in)
	if err != nil {
		return false
	}
	s.client, s.out = nil, upstream.NewWriter(sock)
	s.up.Begin(task, s.out)
	s.sock.Store(sock)
	s.in.begin(sock, task)
	return true
}

// Next takes a command of those that have been read. It returns false if none is complete, or if no more
// are performed.
func (s *Session) Next() (cmd wire.Command, ok bool) {
	if len(s.pending) > coalesce {
		s.Flush()
	}
	if s.taken++; s.taken >= mostCommands {
		s.taken = 0
		s.send() // the upstream can begin
		s.task.Yield()
	}
	if s.Ending() || !s.HasInput() {
		return cmd, false
	}
	cmd, n, ok, need, err := s.in.decoder.Next(s.in.unread())
	s.in.consume(n, need)
	if err != nil {
		s.refuseBytes(err)
	}
	return cmd, ok && err == nil
}

// refuseBytes ends the session because of bytes that are no acceptable command.
func (s *Session) refuseBytes(err error) {
	wrong, ok := errors.AsType[wire.ProtocolError](err)
	if !ok {
		s.End(NoMemory)
		return
	}
	s.Env.Metrics.LimitReached(string(wrong.Limit))
	if s.endsReplies() {
		s.pending = append(s.pending, wrong.Text...)
	}
	s.End(ProtocolError)
}

// endsReplies is Settle for the last command of a session. The replies in a pipe have no
// count, so they end with the upstream connection.
func (s *Session) endsReplies() bool {
	if s.InPipe() {
		return s.CloseUpstream()
	}
	return s.Settle()
}

// ReadMore sends what is ready and waits for the client. rests means that the task must return, and the
// loop then calls it again when there is more. With neither more nor rests the session ends.
func (s *Session) ReadMore() (more, rests bool) {
	s.settleAsked()
	s.send()
	s.Flush()
	if s.in.isLarge() {
		s.task.Leave()
	} else {
		s.task.Back()
	}
	if s.up.Failed() {
		s.End(UpstreamGone)
	}
	if s.ended.Load() != 0 {
		return false, false
	}
	err := s.in.fill()
	nothing := errors.Is(err, errNothing)
	if nothing && s.task.OnLoop() {
		return false, true
	}
	if nothing {
		s.task.Park()
	}
	s.endReading()
	switch {
	case err == nil || nothing:
		return true, false
	case errors.Is(err, errNoMemory):
		s.End(NoMemory)
	case errors.Is(err, errQueryTooLong):
		s.End(QueryTooLong)
	default:
		s.End(ClientGone)
	}
	return false, false
}

// endReading is called when the session no longer waits for the client. The present limits count for all that it
// takes from the input now.
func (s *Session) endReading() {
	if settings := s.Env.Active.Load(); settings != s.limited {
		s.limited = settings
		s.in.decoder.SetLimits(settings.Limits.Framing())
		s.in.most = settings.Limits.Query
	}
	s.in.endFill()
}

// Finish delivers every reply that is ready or pending at the upstream.
func (s *Session) Finish() {
	s.settleAsked()
	if text := s.lastReply(); text != "" && s.Settle() {
		s.pending = append(s.pending, text...)
	}
	s.send()
	s.Flush()
	if s.running.Err() == nil && !s.up.ClosesAtOnce() {
		s.up.Finish()
	}
	s.sock.Load().AwaitDrained(s.task, 0)
}

// Release closes everything, whatever state the session is in. It is the last call.
func (s *Session) Release() {
	s.gone()
	if sock := s.sock.Load(); sock != nil {
		sock.Close()
	} else {
		_ = s.client.Close()
	}
	s.busy.end()
	s.settleAsked() // they use the session
	s.up.Close()
	s.in.release()
}

// Panicked ends this session only. Its argument is recover's.
func (s *Session) Panicked(reason any) {
	s.End(Panicked, slog.Any("panic", reason), slog.String("stack", string(debug.Stack())))
}

// handshakeTLS does the handshake of a client that came over TLS, away from the loop. It returns
// false if it failed.
func (s *Session) handshakeTLS() bool {
	client, encrypted := s.client.(*tls.Conn)
	if !encrypted {
		return true
	}
	s.task.Leave()
	patience := handshakePatience
	if limit := s.Env.Active.Load().Limits.LoginTime; limit > 0 {
		patience = min(patience, limit)
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	err := client.HandshakeContext(ctx)
	// A client that connects and sends nothing is a load balancer's health check.
	if err != nil && !errors.Is(err, io.EOF) && !s.HasEnded(Draining) {
		s.End(HandshakeFailed, slog.String("client", s.RemoteAddr().String()), slog.Any("error", err))
	}
	if err != nil {
		return false
	}
	s.task.Back()
	return true
}

// handshakePatience bounds a client's TLS handshake, unless limits.login_time is shorter.
const handshakePatience = 10 * time.Second
