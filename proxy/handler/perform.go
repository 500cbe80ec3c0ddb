package handler

import (
	"strings"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/conn"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// Perform answers one command, or sends it to the server that answers it.
func (h *handler) Perform(cmd wire.Command) {
	settings := h.Env.Active.Load()
	router := settings.Router
	to := router.Route(h.database(), cmd.Args)
	name := ""
	if to.Spec != nil {
		name = to.Spec.Name
	}
	h.Mute(h.replies.next())
	if h.transaction.state == transactionNone && !h.watched.any() {
		h.era = router.Era
	}
	switch user := h.user(settings); {
	case h.Ending(): // the client's user has been deleted
	case user == nil && !to.Spec.Is(command.BeforeAuth):
		h.ReplyError(h.refusal(to.Spec, cmd.Args, h.unauthenticated(wire.ErrNoAuth)))
	case !to.Spec.Is(command.BeforeAuth) && !h.stillVouchedFor(settings):
	case to.Reserved:
		h.abort(wire.ErrReservedKey)
	case to.Elsewhere:
		h.abort(wire.ErrElsewhere)
	case h.refusedForUser(user, name, cmd.Args, to):
	case router.HoldsBack() && h.refusedAsMoving(router, cmd, to):
	case !to.Ordinary && to.Spec.Is(command.LeavesProtocol):
		h.refuse(wire.ErrUnsupported(name))
	case h.InPipe():
		h.performInPipe(name, cmd, to)
	case !to.Spec.Is(command.InSubscribeMode) && h.hearing.RestrictedAlone():
		h.ReplyError(h.refusal(to.Spec, cmd.Args, wire.ErrRestricted(name)))
	case h.transaction.state != transactionNone:
		h.performInTransaction(name, cmd, to)
	case to.Ordinary && to.Plane == route.Upstream: // nearly all commands
		h.forwardForReply(cmd, to.Spec)
	case h.performHandshake(name, cmd, to.Spec):
	case h.performJoined(name, cmd, to):
	default:
		h.performKeyed(name, cmd, to)
	}
	h.hearing.Performed(name, h.lockReply, h.transaction.state != transactionNone)
}

// performJoined performs the commands that have no keys and concern both planes. It returns
// false for every other command.
func (h *handler) performJoined(name string, cmd wire.Command, to route.Route) bool {
	switch name {
	case "multi":
		h.performMulti(cmd, to.Spec)
	case "exec", "discard":
		h.performStrayExec(name, cmd)
	case "unwatch":
		h.performUnwatch(cmd, to.Spec)
	case "info":
		h.performInfo(cmd)
	case "script|load", "script|exists", "script|flush", "script|kill":
		h.performScript(name, cmd, to)
	case "client|tracking", "client|caching":
		h.performTracking(name, cmd, to.Spec)
	case "publish":
		if !h.hearing.PublishesAlone(cmd.Args) {
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
func (h *handler) performClusterAlone(name string) bool {
	if name != "cluster" && !strings.HasPrefix(name, "cluster|") || h.TryOpen() == "" {
		return false
	}
	h.ReplyError(wire.ErrNoCluster)
	return true
}

// performKeyed sends a command to the plane of its keys.
func (h *handler) performKeyed(name string, cmd wire.Command, to route.Route) {
	switch to.Plane {
	case route.Locks:
		if name == "watch" {
			h.performWatch(cmd, to.Spec)
			return
		}
		h.performOnLocks(name, cmd.Args, to)
	case route.Split:
		h.performSplit(name, cmd, to)
	case route.Cross:
		h.replyUnlessRestricted(name, wire.ErrCrossLock)
	default:
		h.performOnUpstream(name, cmd, to.Spec)
	}
}

// performOnLocks waits until all earlier commands are answered. Then it runs the command on
// the masters and answers it.
func (h *handler) performOnLocks(name string, args [][]byte, to route.Route) {
	if !h.Settle() || h.refusedAsRestricted(name) {
		return
	}
	h.runOnLocks(args, to)
	h.ReplyBytes(h.lockReply)
	if cap(h.lockReply) > conn.LargeBuffer {
		h.lockReply = nil
	}
}

// runOnLocks runs a command on the masters. The reply is then in h.lockReply.
func (h *handler) runOnLocks(args [][]byte, to route.Route) {
	size := 0
	for _, arg := range args {
		size += len(arg)
	}
	copies, ok := h.holdCopies(size)
	if !ok {
		h.lockReply = append(h.lockReply[:0], wire.ErrMemory...)
		return
	}
	defer h.Env.Budget.Release(copies)
	call := lock.Command{
		DB:        h.client.db,
		Args:      args,
		Route:     to,
		Version:   h.client.version,
		LastReads: &h.lastRead,
		Client:    h,
	}
	h.Busy(func() {
		h.trackLocks(call)
		h.lockReply = h.service.Locks.Do(h.Context(), h.lockReply[:0], call)
	})
}

// holdCopies takes memory for the copies of a large lock command. There is one copy, and two
// more for each master: the request, and perhaps an undo. The caller must release held.
// ok is false if the budget has no room.
func (h *handler) holdCopies(size int) (held int, ok bool) {
	if size <= conn.LargeBuffer {
		return 0, true
	}
	held = size * (1 + 2*len(h.Env.Active.Load().Masters))
	if !h.Env.Budget.Reserve(held) {
		h.Env.Metrics.LimitReached(string(config.LimitMemory))
		return 0, false
	}
	return held, true
}

// replyUnlessRestricted is ReplyError for commands that RESP2's subscribe mode does not
// allow. In that mode the client gets the error of the mode.
func (h *handler) replyUnlessRestricted(name string, refusal wire.Error) {
	if h.Settle() && !h.refusedAsRestricted(name) {
		h.ReplyError(refusal)
	}
}

// refusedAsRestricted refuses a command in RESP2's subscribe mode, and returns whether it
// did. No reply may be pending when it is called.
func (h *handler) refusedAsRestricted(name string) bool {
	if !h.hearing.Restricted() {
		return false
	}
	h.ReplyError(wire.ErrRestricted(name))
	return true
}
