package proxy

import (
	"context"
	"strings"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/wire"
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

// perform answers one command or sees to it that it is answered.
func (s *session) perform(cmd wire.Command) {
	settings := s.server.settings()
	router := settings.router
	route := router.route(s.database(), cmd.Args)
	name := ""
	if route.spec != nil {
		name = route.spec.Name
	}
	s.silent = s.replies.next()
	if s.transaction.state == transactionNone && !s.watched.any() {
		s.era = router.era
	}
	switch user := s.user(settings); {
	case s.closing: // the client's user is no more
	case user == nil && !route.spec.Is(command.BeforeAuth):
		s.reply(s.refusal(route.spec, cmd.Args, s.stranger(wire.ErrNoAuth)))
	case !route.spec.Is(command.BeforeAuth) && !s.stillVouchedFor(settings):
	case route.reserved:
		s.abort(errorReservedKey)
	case route.elsewhere:
		s.abort(errorElsewhere)
	case s.refusedForUser(user, name, cmd.Args, route):
	case router.holdsBack() && s.refusedAsMoving(router, cmd, route):
	case !route.ordinary && route.spec.Is(command.LeavesProtocol):
		s.refuse(wire.ErrUnsupported(name))
	case s.isPipe():
		s.performInPipe(name, cmd, route)
	case s.restrictedHere(route.spec):
		s.reply(s.refusal(route.spec, cmd.Args, wire.ErrRestricted(name)))
	case s.transaction.state != transactionNone:
		s.performInTransaction(name, cmd, route)
	case route.ordinary && route.plane == planeUpstream: // nearly all there is
		s.forwardForReply(cmd, route.spec)
	case s.performHandshake(name, cmd, route.spec):
	case s.performJoined(name, cmd, route):
	default:
		s.performKeyed(name, cmd, route)
	}
	s.afterCommand(name)
}

// performJoined answers what concerns both planes and has no keys. It reports
// false for every other command.
func (s *session) performJoined(name string, cmd wire.Command, route route) bool {
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
	case "client|tracking":
		s.performTracking(cmd, route.spec)
	case "client|caching":
		s.performCaching(cmd, route.spec)
	case "publish":
		return s.performPublishAlone(cmd, route)
	default:
		return s.performClusterAlone(name)
	}
	return true
}

// performClusterAlone answers CLUSTER while the upstream is away as a server
// without cluster mode does, which HELLO has said this is: clients that ask at
// connect, and only lock, go on from there.
func (s *session) performClusterAlone(name string) bool {
	if name != "cluster" && !strings.HasPrefix(name, "cluster|") || s.tryOpen() == "" {
		return false
	}
	s.reply(wire.ErrNoCluster)
	return true
}

// performKeyed sends a command where its keys belong.
func (s *session) performKeyed(name string, cmd wire.Command, route route) {
	switch route.plane {
	case planeLock:
		if name == "watch" {
			s.performWatch(cmd, route.spec)
			return
		}
		s.performOnLocks(name, cmd.Args, route)
	case planeSplit:
		s.performSplit(name, cmd, route)
	case planeCross:
		s.replyUnlessRestricted(name, wire.ErrCrossLock)
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
	if cap(s.lockReply) > conn.LargeBuffer {
		s.lockReply = nil
	}
}

// runOnLocks leaves the reply in lockReply.
func (s *session) runOnLocks(args [][]byte, route route) {
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	copies, ok := s.holdCopies(size)
	if !ok {
		s.lockReply = append(s.lockReply[:0], wire.ErrMemory...)
		return
	}
	defer s.server.memory.Release(copies)
	call := lockCall{
		db:       s.client.db,
		args:     args,
		route:    route,
		version:  s.client.version,
		lastRead: &s.lastRead,
	}
	s.watch.begin()
	s.trackLocks(call)
	s.lockReply = s.server.cfg.locks.do(s.ctx, s.lockReply[:0], call)
	s.watch.end()
}

// holdCopies takes memory for what a lock command of many bytes needs while it
// is asked: a copy, and two for each master, which is sent one and may be sent
// another to take it back.
func (s *session) holdCopies(size int) (held int, ok bool) {
	if size <= conn.LargeBuffer {
		return 0, true
	}
	held = size * (1 + 2*len(s.server.settings().masters))
	if !s.server.memory.Reserve(held) {
		s.server.cfg.metrics.limitReached(limitMemory)
		return 0, false
	}
	return held, true
}

// reply answers a command once everything before it is answered.
func (s *session) reply(text string) {
	if strings.HasPrefix(text, "-") {
		s.server.cfg.metrics.refused(text)
	}
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
	if !s.restricted() {
		return false
	}
	s.reply(wire.ErrRestricted(name))
	return true
}
