package proxy

import (
	"context"
	"strings"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/route"
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
	router := settings.Router
	to := router.Route(s.database(), cmd.Args)
	name := ""
	if to.Spec != nil {
		name = to.Spec.Name
	}
	s.silent = s.replies.next()
	if s.transaction.state == transactionNone && !s.watched.any() {
		s.era = router.Era
	}
	switch user := s.user(settings); {
	case s.closing: // the client's user is no more
	case user == nil && !to.Spec.Is(command.BeforeAuth):
		s.reply(s.refusal(to.Spec, cmd.Args, s.stranger(wire.ErrNoAuth)))
	case !to.Spec.Is(command.BeforeAuth) && !s.stillVouchedFor(settings):
	case to.Reserved:
		s.abort(errorReservedKey)
	case to.Elsewhere:
		s.abort(errorElsewhere)
	case s.refusedForUser(user, name, cmd.Args, to):
	case router.HoldsBack() && s.refusedAsMoving(router, cmd, to):
	case !to.Ordinary && to.Spec.Is(command.LeavesProtocol):
		s.refuse(wire.ErrUnsupported(name))
	case s.isPipe():
		s.performInPipe(name, cmd, to)
	case s.restrictedHere(to.Spec):
		s.reply(s.refusal(to.Spec, cmd.Args, wire.ErrRestricted(name)))
	case s.transaction.state != transactionNone:
		s.performInTransaction(name, cmd, to)
	case to.Ordinary && to.Plane == route.Upstream: // nearly all there is
		s.forwardForReply(cmd, to.Spec)
	case s.performHandshake(name, cmd, to.Spec):
	case s.performJoined(name, cmd, to):
	default:
		s.performKeyed(name, cmd, to)
	}
	s.afterCommand(name)
}

// performJoined answers what concerns both planes and has no keys. It reports
// false for every other command.
func (s *session) performJoined(name string, cmd wire.Command, to route.Route) bool {
	switch name {
	case "multi":
		s.performMulti(cmd, to.Spec)
	case "exec", "discard":
		s.performStrayExec(name, cmd)
	case "unwatch":
		s.performUnwatch(cmd, to.Spec)
	case "info":
		s.performInfo(cmd)
	case "script|load", "script|exists", "script|flush", "script|kill":
		s.performScript(name, cmd, to)
	case "client|tracking":
		s.performTracking(cmd, to.Spec)
	case "client|caching":
		s.performCaching(cmd, to.Spec)
	case "publish":
		return s.performPublishAlone(cmd, to)
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
func (s *session) performKeyed(name string, cmd wire.Command, to route.Route) {
	switch to.Plane {
	case route.Locks:
		if name == "watch" {
			s.performWatch(cmd, to.Spec)
			return
		}
		s.performOnLocks(name, cmd.Args, to)
	case route.Split:
		s.performSplit(name, cmd, to)
	case route.Cross:
		s.replyUnlessRestricted(name, wire.ErrCrossLock)
	default:
		s.performOnUpstream(name, cmd, to.Spec)
	}
}

// performOnLocks waits for its turn in the program, runs the command on the
// masters and answers it.
func (s *session) performOnLocks(name string, args [][]byte, to route.Route) {
	if !s.settle() || s.refusedAsRestricted(name) {
		return
	}
	s.runOnLocks(args, to)
	s.replyBytes(s.lockReply)
	if cap(s.lockReply) > conn.LargeBuffer {
		s.lockReply = nil
	}
}

// runOnLocks leaves the reply in lockReply.
func (s *session) runOnLocks(args [][]byte, to route.Route) {
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
		route:    to,
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
	held = size * (1 + 2*len(s.server.settings().Masters))
	if !s.server.memory.Reserve(held) {
		s.server.cfg.metrics.LimitReached(string(config.LimitMemory))
		return 0, false
	}
	return held, true
}

// reply answers a command once everything before it is answered.
func (s *session) reply(text string) {
	if strings.HasPrefix(text, "-") {
		s.server.cfg.metrics.Refused(text)
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
