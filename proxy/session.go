package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/pubsub"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// coalesce is how many bytes of replies may wait for the rest of a pipeline.
const coalesce = 64 << 10

// A session is one client's connection. Its goroutine follows each command on
// one path: serve reads it, perform decides who answers (the proxy itself, a
// transaction, the lock plane, both planes, or the upstream), and the answer
// goes out in program order. Nothing outlives serve.
type session struct {
	server *proxyServer
	id     int64
	sock   *conn.Socket
	in     *conn.Input
	guard  *wire.Decoder
	out    *conn.Writer
	ctx    context.Context // ends when the client has gone
	gone   context.CancelFunc
	watch  watch

	// Set by others, who then wake the socket.
	draining atomic.Bool
	expired  atomic.Bool
	missed   atomic.Bool // messages from the masters
	reading  atomic.Bool // idle: waiting for the client

	arrived int64        // on the server's clock
	login   atomic.Int32 // loginUnknown, loginOwed or loginDone

	pending []byte // replies that are not yet written; they come before all else
	closing bool

	// upstream is nil until a command needs it. Only the session changes it.
	upstream atomic.Pointer[upstream]
	// outdatedAt: the upstream was away when subscriptions were confirmed, so that
	// it does not know them. Once it has been opened so often, for anybody, messages
	// may be published there. 0: it knows them.
	outdatedAt atomic.Int64
	listening  atomic.Pointer[pubsub.Listener] // nil: nothing is wanted of the masters; only the session changes it
	batch      struct{ from, to int }          // commands of in that are forwarded but not yet sent
	prefix     []byte                          // commands sent before the batch, which are not as they came
	owes       debt                            // ordinary replies to the batch, not yet entered
	forwarded  int                             // commands in prefix and batch
	mayBlock   bool                            // a forwarded command may wait for other clients
	dialError  string                          // the dial failed for what was read at the same time

	account atomic.Pointer[config.Account] // who the client is; nil: nobody yet. Only the session changes it
	vouched *vouched                       // why, where the upstream is yet to confirm it
	own     struct {                       // the lock rules as that user has them
		of          *config.Account
		from, rules route.Rules
	}
	client      clientState
	replies     replyMode
	silent      bool // the present command's replies are not wanted
	monitoring  bool
	transaction transaction
	watched     watched
	era         int // of the rules under which these two began
	tracking    tracking

	lockReply []byte // reused
	lastRead  lastRead
}

func newSession(srv *proxyServer, id int64, client net.Conn) *session {
	s := &session{server: srv, id: id, sock: conn.NewSocket(client, &srv.clock)}
	s.in = conn.NewInput(s.sock, srv.memory)
	s.guard = wire.NewDecoder(wire.RedisLimits)
	s.guard.Charge = srv.memory.Charge
	s.out = conn.NewWriter(s.sock)
	s.ctx, s.gone = context.WithCancel(srv.running)
	s.watch.session = s
	s.arrived = srv.clock.Now()
	s.beginAnew()
	if !srv.settings().Users.AtUpstream {
		s.oweLogin()
	}
	return s
}

// serve runs the session to its end and closes the client's socket.
func (s *session) serve() {
	defer s.release()
	defer func() {
		if reason := recover(); reason != nil {
			s.panicked(reason)
		}
	}()
	if !s.secure() {
		return
	}
	for !s.closing {
		s.performAll()
		if s.closing || !s.readMore() {
			break
		}
	}
	s.part()
}

// performAll performs every whole command that has been read.
func (s *session) performAll() {
	s.obey(&s.server.settings().Limits)
	for !s.closing {
		s.introduce()
		cmd, n, ok, need, err := s.guard.Next(s.in.Unread())
		s.in.Consume(n)
		s.in.Expect(need)
		if err != nil {
			s.refuseBytes(err)
			return
		}
		if !ok {
			return
		}
		s.perform(cmd)
		if len(s.pending) > coalesce {
			s.flush()
		}
	}
}

// obey puts limits in force for what is read from here on.
func (s *session) obey(limits *config.Limits) {
	s.guard.SetLimits(limits.Framing())
	s.in.SetLimit(limits.Query)
}

// refuseBytes ends the session because of what the client sends.
func (s *session) refuseBytes(err error) {
	text := wire.ErrMemory
	if wrong, ok := errors.AsType[wire.ProtocolError](err); ok {
		text = wrong.Text
		s.server.cfg.metrics.ProtocolError()
		s.server.cfg.metrics.LimitReached(string(wrong.Limit))
	} else {
		s.server.cfg.metrics.LimitReached(string(config.LimitMemory))
	}
	if s.settle() {
		s.pending = append(s.pending, text...)
	}
	s.closing = true
}

// readMore sends what is ready and waits for the client. It reports false at
// the session's end.
func (s *session) readMore() bool {
	s.send()
	s.flush()
	if !s.in.IsAhead() { // what came during the dial is answered by it
		s.dialError = ""
	}
	for !s.mustEnd() {
		s.reading.Store(true)
		err := s.in.Fill()
		s.reading.Store(false)
		switch {
		case err == nil:
			return true
		case errors.Is(err, conn.ErrWoken):
			s.sock.ClearWake()
			s.in.Shrink()
		case errors.Is(err, conn.ErrNoMemory):
			s.server.cfg.metrics.LimitReached(string(config.LimitMemory))
			if s.settle() {
				s.pending = append(s.pending, wire.ErrMemory...)
			}
			return false
		case errors.Is(err, conn.ErrQueryTooLong):
			s.server.cfg.metrics.LimitReached(string(config.LimitQuery))
			return false
		default:
			return false
		}
	}
	return false
}

func (s *session) mustEnd() bool {
	up := s.upstream.Load()
	return s.draining.Load() || s.expired.Load() || s.missed.Load() || up != nil && up.ended()
}

// flush writes the pending replies.
func (s *session) flush() {
	if len(s.pending) == 0 {
		s.repliesSent()
		return
	}
	s.flushWith(func() {})
}

// flushWith does something with the client's writing side taken, which may add
// to the pending replies, and writes them.
func (s *session) flushWith(first func()) {
	if err := s.writeAfter(first); err != nil {
		s.clientLeft()
	}
	s.pending = s.pending[:0]
	if cap(s.pending) > coalesce {
		s.pending = nil
	}
	s.repliesSent()
}

func (s *session) writeAfter(first func()) error {
	s.out.Lock()
	defer s.out.Unlock()
	first()
	_, err := s.out.Write(s.pending)
	return err
}

// clientEnded is called when the client sends no more. It may have gone, or
// only be waiting for the rest: lock commands are given up, for a lock nobody
// holds is worse than an answer lost; the upstream is told at once only where
// it may be blocking, as Redis would do no more for such a client either.
func (s *session) clientEnded() {
	if s.mayBlock {
		s.clientLeft()
		return
	}
	s.gone()
	if up := s.upstream.Load(); up != nil {
		up.lastWords()
	}
}

// clientLeft is called when the client takes no more, or is otherwise known to
// have gone.
func (s *session) clientLeft() {
	s.gone()
	if up := s.upstream.Load(); up != nil {
		up.lastWords()
		up.conn.CloseWrite()
	}
}

// part ends the session in order: every reply that is ready or still comes
// from the upstream is delivered.
func (s *session) part() {
	s.send()
	s.flush()
	if up := s.upstream.Load(); up != nil && s.server.running.Err() == nil {
		up.finish()
	}
}

// release closes everything, in whatever state the session is.
func (s *session) release() {
	s.gone()
	_ = s.sock.Close()
	s.watch.end()
	if up := s.upstream.Load(); up != nil {
		_ = up.conn.Close()
		<-up.done
		up.giveBack()
	}
	s.stopListening()
	s.in.Release()
	s.guard.ForgetArgs()
	s.forgetQueued()
	s.forgetWatched()
	s.server.memory.Release(s.client.bytes)
}

// panicked is called with what recover returned, and ends this session only.
func (s *session) panicked(reason any) {
	s.server.cfg.metrics.PanicRecovered()
	s.server.cfg.log.Error("a session is closed because of a defect in the proxy",
		slog.Any("panic", reason), slog.String("stack", string(debug.Stack())))
	_ = s.sock.Close()
	s.gone()
}
