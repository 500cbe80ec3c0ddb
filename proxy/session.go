package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync/atomic"

	"redlock-proxy/redlock"
)

// lockRunner is what sessions ask of the lock plane: one command, a look at
// keys for WATCH, and one transaction. do and execute append the one reply to
// dst; look returns an error reply or "". ctx ends when the client has gone.
// Nothing of the arguments is kept.
type lockRunner interface {
	do(ctx context.Context, dst []byte, call lockCall) []byte
	look(ctx context.Context, db int, keys [][]byte) (w *redlock.Watch, refusal string)
	execute(ctx context.Context, dst []byte, t lockTransaction) []byte
}

// coalesce is how many bytes of replies may wait for the rest of a pipeline.
const coalesce = 64 << 10

// A session is one client's connection. Its goroutine follows each command on
// one path: serve reads it, perform decides who answers (the proxy itself, a
// transaction, the lock plane, both planes, or the upstream), and the answer
// goes out in program order. Nothing outlives serve.
type session struct {
	server *proxyServer
	id     int64
	sock   *socket
	in     *input
	guard  *guard
	out    *output
	ctx    context.Context // ends when the client has gone
	gone   context.CancelFunc
	watch  watch

	// Set by others, who then wake the socket.
	draining atomic.Bool
	expired  atomic.Bool
	reading  atomic.Bool // idle: waiting for the client

	pending []byte // replies that are not yet written; they come before all else
	closing bool

	// upstream is nil until a command needs it. Only the session changes it.
	upstream  atomic.Pointer[upstream]
	batch     struct{ from, to int } // commands in in.buf that are forwarded but not yet sent
	prefix    []byte                 // sent before the batch
	owes      debt                   // ordinary replies to the batch, not yet entered
	dialError string                 // the dial failed for what was read at the same time

	client      clientState
	replies     replyMode
	silent      bool // the present command's replies are not wanted
	monitoring  bool
	transaction transaction
	watched     watched

	lockReply []byte // reused
	lastRead  lastRead
}

func newSession(srv *proxyServer, id int64, conn net.Conn) *session {
	s := &session{server: srv, id: id, sock: newSocket(conn, &srv.clock)}
	s.in = newInput(s.sock, &srv.memory)
	s.guard = newGuard(srv.cfg.guard)
	s.out = newOutput(s.sock)
	s.ctx, s.gone = context.WithCancel(srv.running)
	s.watch.session = s
	s.client = s.freshClient()
	s.guard.setAuthenticated(s.client.authenticated)
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
	for !s.closing {
		cmd, n, ok, need, err := s.guard.next(s.in.unread())
		s.in.consume(n)
		s.in.need = need
		if err != nil {
			s.server.cfg.metrics.protocolErrorSeen()
			if s.settle() {
				s.pending = append(s.pending, "-"+err.Error()+"\r\n"...)
			}
			s.closing = true
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

// readMore sends what is ready and waits for the client. It reports false at
// the session's end.
func (s *session) readMore() bool {
	s.send()
	s.flush()
	s.dialError = ""
	for !s.mustEnd() {
		s.reading.Store(true)
		err := s.in.fill()
		s.reading.Store(false)
		switch {
		case err == nil:
			return true
		case errors.Is(err, errWoken):
			s.sock.calm()
			s.in.relax()
		case errors.Is(err, errNoMemory):
			s.pending = append(s.pending, errorMemory...)
			return false
		default:
			return false
		}
	}
	return false
}

func (s *session) mustEnd() bool {
	up := s.upstream.Load()
	return s.draining.Load() || s.expired.Load() || up != nil && up.ended()
}

// perform answers one command or sees to it that it is answered.
func (s *session) perform(cmd command) {
	route := s.server.cfg.router().route(s.database(), cmd.args)
	name := ""
	if route.spec != nil {
		name = route.spec.name
	}
	s.silent = s.replies.next()
	switch {
	case !s.client.authenticated && !beforeAuthentication(name):
		s.reply(s.refusal(route.spec, cmd.args, errorNoAuth))
	case route.reserved:
		s.abort(errorReservedKey)
	case s.isPipe():
		s.performInPipe(name, cmd, route)
	case s.transaction.state != transactionNone:
		s.performInTransaction(name, cmd, route)
	case s.performHandshake(name, cmd, route.spec):
	case s.performJoined(name, cmd, route):
	default:
		s.performKeyed(name, cmd, route)
	}
}

// performJoined answers what concerns both planes and has no keys. It reports
// false for every other command.
func (s *session) performJoined(name string, cmd command, route route) bool {
	switch name {
	case "multi":
		s.performMulti(cmd, route.spec)
	case "exec", "discard":
		s.performStrayExec(name, cmd)
	case "unwatch":
		s.performUnwatch(cmd, route.spec)
	case "info":
		s.performInfo(cmd)
	case "script|load", "script|exists", "script|flush", "script|kill":
		s.performScript(name, cmd, route)
	default:
		return false
	}
	return true
}

// performKeyed sends a command where its keys belong.
func (s *session) performKeyed(name string, cmd command, route route) {
	switch route.plane {
	case planeLock:
		if name == "watch" {
			s.performWatch(cmd, route.spec)
			return
		}
		s.performOnLocks(name, cmd.args, route)
	case planeSplit:
		s.performSplit(name, cmd, route)
	case planeCross:
		s.replyUnlessRestricted(name, errorCrossLock)
	default:
		s.performOnUpstream(name, cmd, route.spec)
	}
}

// performOnLocks waits for its turn in the program, runs the command on the
// masters and answers it.
func (s *session) performOnLocks(name string, args [][]byte, route route) {
	if !s.settle() || s.refusedAsRestricted(name) {
		return
	}
	s.runOnLocks(args, route)
	s.replyBytes(s.lockReply)
	if cap(s.lockReply) > largeBuffer {
		s.lockReply = nil
	}
}

// runOnLocks leaves the reply in lockReply.
func (s *session) runOnLocks(args [][]byte, route route) {
	s.watch.begin()
	s.lockReply = s.server.cfg.locks.do(s.ctx, s.lockReply[:0], lockCall{
		db:       s.client.db,
		args:     args,
		route:    route,
		resp3:    s.client.resp3,
		lastRead: &s.lastRead,
	})
	s.watch.end()
}

// reply answers a command once everything before it is answered.
func (s *session) reply(text string) {
	if s.settle() && !s.silent {
		s.pending = append(s.pending, text...)
	}
}

func (s *session) replyBytes(value []byte) {
	if s.settle() && !s.silent {
		s.pending = append(s.pending, value...)
	}
}

// replyUnlessRestricted is reply for commands that RESP2's subscribe mode
// does not allow.
func (s *session) replyUnlessRestricted(name, text string) {
	if s.settle() && !s.refusedAsRestricted(name) {
		s.reply(text)
	}
}

// refusedAsRestricted refuses a command in RESP2's subscribe mode. Only while
// nothing is owed.
func (s *session) refusedAsRestricted(name string) bool {
	up := s.upstream.Load()
	if up == nil || !up.owed.restricted() {
		return false
	}
	s.reply(errorRestricted(name))
	return true
}

// flush writes the pending replies.
func (s *session) flush() {
	if len(s.pending) == 0 {
		return
	}
	s.out.take()
	_, err := s.sock.Write(s.pending)
	s.out.give()
	if err != nil {
		s.clientLeft()
	}
	s.pending = s.pending[:0]
	if cap(s.pending) > coalesce {
		s.pending = nil
	}
}

// clientLeft ends what is done for the client, as its going away would have
// on one Redis: lock commands are given up, and the upstream is told.
func (s *session) clientLeft() {
	s.gone()
	if up := s.upstream.Load(); up != nil {
		up.conn.closeWrite()
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
	}
	s.in.release()
	s.forgetQueued()
}

// panicked is called with what recover returned, and ends this session only.
func (s *session) panicked(reason any) {
	s.server.cfg.metrics.panicRecovered()
	s.server.cfg.log.Error("a session is closed because of a defect in the proxy",
		slog.Any("panic", reason), slog.String("stack", string(debug.Stack())))
	_ = s.sock.Close()
	s.gone()
}
