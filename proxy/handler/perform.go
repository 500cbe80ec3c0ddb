package handler

import (
	"cmp"
	"context"
	"strings"
	"time"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// perform answers one command, or sends it to the server that answers it.
func (h *Handler) perform(cmd wire.Command) {
	if len(cmd.Raw) > conn.LargeBuffer {
		h.LeaveLoop() // it may have very many keys
	}
	settings := h.Env.Active.Load()
	router := settings.Router
	to := router.Route(h.multi.database(h.client.DB), cmd.Args)
	name := ""
	if to.Spec != nil {
		name = to.Spec.Name
	}
	h.Doing(name)
	if h.spec != to.Spec {
		h.spec = to.Spec
		h.clients.Command.Store(to.Spec)
	}
	switch {
	case !to.Ordinary: // it may change anything
		h.plain = nil
	case h.plain == settings && to.Plane == route.Upstream && !to.Reserved:
		h.forwardForReply(cmd, to, settings)
		return
	}
	if !h.isQuick(cmd, to) {
		h.LeaveLoop()
	}
	h.Mute(h.replies.Next())
	if !h.inTransaction() && !h.multi.watched.any() {
		h.multi.generation = router.Generation
	}
	switch user := h.user(settings); {
	case h.Ending(): // the client's user has been deleted
	case user == nil && !to.Spec.Is(command.BeforeAuth):
		h.ReplyError(cmp.Or(to.Spec.Check(cmd.Args), h.unauthenticated(wire.ErrNoAuth).Refusing(name)))
	case !to.Spec.Is(command.BeforeAuth) && !h.stillAccepted(settings):
	case to.Reserved:
		h.abort(wire.ErrReservedKey)
	case to.Elsewhere:
		h.abort(wire.ErrElsewhere)
	case to.Spec == nil && to.Plane != route.Upstream:
		h.abort(unknownOnLocks(settings, cmd.Args))
	case h.refusedForUser(user, name, cmd.Args, to):
	case router.HoldsBack() && h.refusedAsMoving(router, cmd, to):
	case to.Plane != route.Upstream && h.refusedAsLarge(&settings.Limits, cmd, to):
	case !to.Ordinary && to.Spec.Is(command.LeavesProtocol):
		h.abort(wire.ErrUnsupported(name))
	case to.Spec.Is(command.AboutClients | command.Console):
		h.performHere(name, cmd, to)
	case h.InPipe():
		h.performInPipe(name, cmd, to)
	case !to.Spec.Is(command.InSubscribeMode) && h.restrictedHere():
		h.ReplyError(cmp.Or(to.Spec.Check(cmd.Args), wire.ErrRestricted(name)))
	case h.inTransaction():
		h.performInTransaction(name, cmd, to)
	case to.Ordinary && to.Plane == route.Upstream: // nearly all commands
		h.forwardForReply(cmd, to, settings)
		if h.isPlain(settings) {
			h.plain = settings
		}
	case h.performHandshake(name, cmd, to.Spec):
	case h.performJoined(name, cmd, to):
	default:
		h.performKeyed(name, cmd, to, settings)
	}
	h.tracked(name)
	if len(to.Keys) == 0 || h.inTransaction() || to.Spec.Is(command.Conditions) {
		h.publish() // other commands change nothing of it
	}
}

// isPlain tells whether ordinary commands on keys of the upstream can be forwarded without a look at the client,
// until another command comes: its user may send them, no mode or transaction holds them back, they are
// answered, and may share a connection.
func (h *Handler) isPlain(settings *config.Settings) bool {
	user := h.account.Load()
	return user != nil && user.May == config.RightBoth && settings.Users.Has(user) && h.vouched == nil &&
		h.replies == (wire.ReplyMode{}) && !h.Muted() && !h.inTransaction() && !h.multi.watched.any() &&
		!settings.Router.HoldsBack() && h.mayShare(settings)
}

// unknownOnLocks refuses an unknown command that names a lock key. It uses Redis's words, unless
// the upstream may have the command and has not told.
func unknownOnLocks(settings *config.Settings, args [][]byte) wire.Error {
	if settings.Config.Upstream.Kind == config.UpstreamServer && !settings.Router.Table.Learned {
		return wire.ErrUntoldCommand(args[0])
	}
	return (*command.Spec)(nil).Check(args)
}

// performJoined performs the commands that have no keys and concern both planes. It returns
// false for every other command.
func (h *Handler) performJoined(name string, cmd wire.Command, to route.Route) bool {
	switch name {
	case "multi":
		h.performMulti(cmd, to.Spec)
	case "exec", "discard":
		h.replyUnlessRestricted(name, cmd.Args, strayExec(name, cmd.Args))
	case "unwatch":
		h.performUnwatch(cmd, to.Spec)
	case "info":
		h.performInfo(cmd)
	case "script|load", "script|exists", "script|flush", "script|kill":
		h.performScript(name, cmd, to)
	case "client|tracking", "client|caching":
		h.performTracking(name, cmd, to.Spec)
	case "publish":
		if !h.publishesHere(cmd.Args) {
			return false
		}
		h.performOnLocks(name, cmd.Args, to)
	default:
		return h.performClusterAlone(name)
	}
	return true
}

// performClusterAlone answers CLUSTER while the upstream cannot be reached. It answers like a
// server without cluster mode, as HELLO has announced. So a client that only uses locks,
// and sends CLUSTER when it connects, can go on.
func (h *Handler) performClusterAlone(name string) bool {
	if name != "cluster" && !strings.HasPrefix(name, "cluster|") || h.TryOpen() == "" {
		return false
	}
	h.ReplyError(wire.ErrNoCluster)
	return true
}

// performKeyed sends a command to the plane of its keys.
func (h *Handler) performKeyed(name string, cmd wire.Command, to route.Route, settings *config.Settings) {
	switch {
	case to.Plane == route.Locks && name == "watch":
		h.performWatch(cmd, to.Spec)
	case to.Plane == route.Locks:
		h.performOnLocks(name, cmd.Args, to)
	case to.Plane == route.Split:
		h.performSplit(name, cmd, to)
	case to.Plane == route.Cross:
		h.replyUnlessRestricted(name, cmd.Args, wire.ErrCrossLock)
	default:
		h.performOnUpstream(name, cmd, to, settings)
	}
}

// performOnLocks waits until all earlier commands are answered. Then it runs the command on
// the masters and answers it.
func (h *Handler) performOnLocks(name string, args [][]byte, to route.Route) {
	if h.overlapsOnLocks(args, to) {
		return
	}
	if !h.Settle() || h.refusedAsRestricted(name, args) {
		return
	}
	h.ReplyBytes(h.runOnLocks(args, to))
	if cap(h.lockReply) > conn.LargeBuffer {
		h.lockReply = nil
	}
}

// overlapsOnLocks has the masters asked without waiting for earlier commands on other keys, if that is
// possible. The reply comes after theirs.
func (h *Handler) overlapsOnLocks(args [][]byte, to route.Route) bool {
	call := h.lockCommand(args, to)
	if h.restricted() || !h.service.Locks.Overlaps(call) {
		return false
	}
	key := args[to.Keys[0]]
	if len(key) == 0 || !h.MayOverlap(key, args) {
		return false
	}
	h.askBeside(key, call) // of its own, so that nothing is allocated where nothing overlaps
	return true
}

func (h *Handler) askBeside(key []byte, call lock.Command) {
	call.Leases = h.holder()
	h.Overlap(key, call.Args, func(ctx context.Context, a *session.Asked) {
		h.clients.OnLocks(true)
		defer h.clients.OnLocks(false)
		call.Args = a.Args
		a.Reply = h.service.Locks.Do(ctx, a.Reply, call)
	})
}

// lockCommand is a command of the client for the masters. The client's leases are missing.
func (h *Handler) lockCommand(args [][]byte, to route.Route) lock.Command {
	return lock.Command{DB: h.client.DB, Args: args, Route: to, Version: h.client.Version, LastReads: &h.lastRead, Client: h, From: h.clients.Entry}
}

// runOnLocks runs a command on the masters. The reply is valid until the next call.
func (h *Handler) runOnLocks(args [][]byte, to route.Route) (reply []byte) {
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	copies, ok := h.holdCopies(size)
	if !ok {
		h.lockReply = append(h.lockReply[:0], wire.ErrMemory...)
		return h.lockReply
	}
	defer h.Env.Budget.Release(copies)
	call := h.lockCommand(args, to)
	call.Leases = h.holder()
	if h.OnLoop() && h.service.Locks.Parks(call) {
		h.clients.OnLocks(true)
		h.Parked(func(ctx context.Context) { h.lockReply = h.service.Locks.Do(ctx, h.lockReply[:0], call) })
		h.clients.OnLocks(false)
		return h.lockReply
	}
	h.busyOnLocks(func() {
		h.trackLocks(call)
		h.lockReply = h.service.Locks.Do(h.Context(), h.lockReply[:0], call)
	})
	return h.lockReply
}

// isQuick tells whether the loop may perform a command. Such a command waits for nothing but the
// upstream's replies and the masters' votes, or it leaves the loop itself. All others run on a
// goroutine.
func (h *Handler) isQuick(cmd wire.Command, to route.Route) bool {
	if h.inTransaction() || h.multi.watched.any() || h.InPipe() || h.listensToMasters() {
		return false
	}
	return to.Plane == route.Locks || to.Ordinary && to.Plane == route.Upstream
}

// busyOnLocks is Busy for requests to the masters.
func (h *Handler) busyOnLocks(ask func()) {
	h.clients.OnLocks(true)
	h.Busy(ask)
	h.clients.OnLocks(false)
}

// holdCopies takes memory for the copies of a large lock command: the request, and the question
// to the masters. The streams to the masters take only one large question at a time. The caller
// must release held. ok is false if the budget has no room.
func (h *Handler) holdCopies(size int) (held int, ok bool) {
	if size <= conn.LargeBuffer {
		return 0, true
	}
	return 2 * size, h.reserve(2 * size)
}

// mayAnswer waits until all earlier commands are answered. It returns false if the session
// ends, or if it has refused the command.
func (h *Handler) mayAnswer(name string, args [][]byte, spec *command.Spec) bool {
	if !h.Settle() || h.refusedAsRestricted(name, args) {
		return false
	}
	refusal := spec.Check(args)
	if refusal != "" {
		h.ReplyError(refusal)
	}
	return refusal == ""
}

// replyUnlessRestricted is ReplyError for commands that RESP2's subscribe mode does not
// allow. In that mode the client gets the error of the mode.
func (h *Handler) replyUnlessRestricted(name string, args [][]byte, refusal wire.Error) {
	if h.Settle() && !h.refusedAsRestricted(name, args) {
		h.ReplyError(refusal)
	}
}

// refusedAsRestricted refuses a command in RESP2's subscribe mode, and returns whether it
// did. No reply may be pending when it is called.
func (h *Handler) refusedAsRestricted(name string, args [][]byte) bool {
	if !h.restricted() {
		return false
	}
	h.ReplyError(cmp.Or(h.spec.Check(args), wire.ErrRestricted(name)))
	return true
}

// refusedAsMoving refuses a command on a key that a change of the rules has moved, and
// returns whether it did.
func (h *Handler) refusedAsMoving(r *route.Router, cmd wire.Command, to route.Route) bool {
	until := r.HeldBack(h.database(), cmd.Args, to, time.Now())
	if until.IsZero() {
		return false
	}
	h.abort(wire.ErrMoving(until))
	return true
}

// refusedAsLarge refuses a command that would hold up all other lock commands at the masters,
// and returns whether it did. Of a Split command the masters get only the lock keys.
func (h *Handler) refusedAsLarge(limits *config.Limits, cmd wire.Command, to route.Route) bool {
	if int64(len(cmd.Raw)) <= limits.LockCommand && len(to.Keys) <= limits.LockKeys {
		return false
	}
	size, keys := len(cmd.Raw), 0
	if to.Plane == route.Split {
		size = 0
	}
	for i, at := range to.Keys {
		if to.Lock[i] && at < len(cmd.Args) {
			keys++
			if to.Plane == route.Split {
				size += len(cmd.Args[at])
			}
		}
	}
	switch {
	case int64(size) > limits.LockCommand:
		h.abort(h.reached(config.LimitLockCommand, wire.ErrTooLarge("lock command", config.LimitLockCommand)))
	case keys > limits.LockKeys:
		h.abort(h.reached(config.LimitLockKeys, wire.ErrLockKeys))
	default:
		return false
	}
	return true
}

// performSplit performs a command whose keys are on both planes. It runs both halves at the
// same time and joins their replies. If one half fails, the client gets its error.
func (h *Handler) performSplit(name string, cmd wire.Command, to route.Route) {
	if !h.Settle() || h.refusedAsRestricted(name, cmd.Args) || !h.open(cmd) {
		return
	}
	h.sendCaching()
	upstreamHalf, lockHalf := to.Halves(cmd.Args)
	h.Insert(resp.AppendCommand(nil, upstreamHalf...), upstream.Expectation{To: upstream.ToOwner, Count: 1})
	h.Send()
	ofLocks := h.runOnLocks(lockHalf, route.OfLockKeys(to.Spec, len(lockHalf)))
	fromUpstream, ok := h.Settled()
	if !ok {
		return
	}
	if fromUpstream == nil {
		fromUpstream = []byte(wire.ErrUpstreamReply)
	}
	if name == "mget" {
		h.ReplyBytes(to.JoinValues(fromUpstream, ofLocks))
		return
	}
	h.ReplyBytes(route.JoinCounts(fromUpstream, ofLocks))
}
