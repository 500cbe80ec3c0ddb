package handler

import (
	"cmp"
	"strings"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/wire"
)

// perform answers one command, or sends it to the server that answers it.
func (h *Handler) perform(cmd wire.Command) {
	if len(cmd.Raw) > session.LargeBuffer {
		h.LeaveLoop() // it may have very many keys
	}
	settings := h.Env.Active.Load()
	router := settings.Router
	db := h.client.DB
	if h.inTransaction() {
		db = h.database()
	}
	to := router.Route(db, cmd.Args)
	name := ""
	if to.Spec != nil {
		name = to.Spec.Name
	}
	h.Doing(name)
	if h.spec.Load() != to.Spec {
		h.spec.Store(to.Spec)
	}
	simple := to.Ordinary || to.Plane == route.Locks && to.Spec.Is(route.Script)
	switch {
	case !simple: // it may change anything
		h.plain = nil
	case h.plain != settings || to.Reserved:
	case to.Plane == route.Upstream:
		h.forwardForReply(cmd, to, settings)
		return
	case !h.refusedAsLarge(&settings.Limits, cmd, to):
		h.askMasters(cmd.Args, to)
		return
	default:
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
	case user == nil && !to.Spec.Is(route.BeforeAuth):
		h.ReplyError(cmp.Or(to.Spec.Check(cmd.Args), h.unauthenticated(wire.ErrNoAuth).Refusing(name)))
	case !to.Spec.Is(route.BeforeAuth) && !h.stillAccepted(settings):
	case to.Reserved:
		h.abort(wire.ErrReservedKey)
	case to.Elsewhere:
		h.abort(wire.ErrElsewhere)
	case to.Spec == nil && to.Plane != route.Upstream:
		h.abort(unknownOnLocks(settings, cmd.Args))
	case h.refusedForUser(user, name, cmd.Args, to):
	case router.HoldsBack() && h.refusedAsMoving(router, cmd, to):
	case to.Plane != route.Upstream && h.refusedAsLarge(&settings.Limits, cmd, to):
	case !to.Ordinary && to.Spec.Is(route.LeavesProtocol):
		h.abort(wire.ErrUnsupported(name))
	case to.Spec.Is(route.AboutClients | route.Console):
		h.performHere(name, cmd, to)
	case h.InPipe():
		h.performInPipe(name, cmd, to)
	case !to.Spec.Is(route.InSubscribeMode) && h.restrictedHere():
		h.ReplyError(cmp.Or(to.Spec.Check(cmd.Args), wire.ErrRestricted(name)))
	case h.inTransaction():
		h.performInTransaction(name, cmd, to)
	default:
		h.performByName(name, cmd, to, settings)
	}
	h.tracked(name)
	if simple && h.plain != settings && h.isPlain(settings) {
		h.plain = settings
	}
	if len(to.Keys) == 0 || h.inTransaction() || to.Spec.Is(route.Conditions) {
		h.publish() // other commands change nothing of it
	}
}

// isPlain tells whether ordinary commands and scripts on lock keys need no look at the client
// until another command comes: its user may send them, no mode or transaction holds them back, they are
// answered, and those on keys of the upstream may share a connection.
func (h *Handler) isPlain(settings *config.Settings) bool {
	user := h.account.Load()
	return user != nil && user.May == config.RightBoth && settings.Users.Has(user) && h.cached == nil &&
		h.replies == (wire.ReplyMode{}) && !h.Muted() && !h.inTransaction() && !h.multi.watched.any() &&
		!settings.Router.HoldsBack() && h.mayShare(settings)
}

// unknownOnLocks refuses an unknown command that names a lock key. It uses Redis's words, unless
// the upstream may have the command and has not told.
func unknownOnLocks(settings *config.Settings, args [][]byte) wire.Error {
	if settings.Config.Upstream.Kind == config.UpstreamServer && !settings.Router.Table.Learned {
		return wire.ErrUntoldCommand(args[0])
	}
	return (*route.Spec)(nil).Check(args)
}

// performByName has the function of a command perform it (byName), or sends it to the plane of its keys.
func (h *Handler) performByName(name string, cmd wire.Command, to route.Route, settings *config.Settings) {
	if !to.Ordinary {
		if do := byName[name]; do != nil && do(h, name, cmd, to) {
			return
		}
	}
	switch {
	case !to.Ordinary && route.AsksForMaintenance(cmd.Args): // also if the upstream has told of it
		h.replyUnlessRestricted("client", cmd.Args, wire.ErrUnknownSubcommand(cmd.Args))
	case to.Plane == route.Locks:
		h.performOnLocks(name, cmd.Args, to)
	case to.Plane == route.Split:
		h.performSplit(name, cmd, to)
	case to.Plane == route.Cross:
		h.replyUnlessRestricted(name, cmd.Args, wire.ErrCrossLock)
	case to.Spec.Is(route.Subscription):
		h.performSubscription(name, cmd)
	case to.Spec == nil && wire.IsForgedRequest(cmd.Args[0]):
		h.End(session.ForgedRequest)
	case (name == "cluster" || strings.HasPrefix(name, "cluster|")) && h.TryOpen() != "":
		// The client may only use locks. It gets the answer of a server without cluster mode, as HELLO has announced.
		h.ReplyError(wire.ErrNoCluster)
	default:
		h.forwardForReply(cmd, to, settings)
	}
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

// mayAnswer waits until all earlier commands are answered. It returns false if the session
// ends, or if it has refused the command.
func (h *Handler) mayAnswer(name string, args [][]byte, spec *route.Spec) bool {
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
	if !h.restricted() || h.spec.Load().Is(route.InSubscribeMode) {
		return false
	}
	h.ReplyError(cmp.Or(h.spec.Load().Check(args), wire.ErrRestricted(name)))
	return true
}
