package handler

import (
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/upstream"
	"redlock-proxy/proxy/wire"
)

// refusedToWait refuses WAIT and WAITAOF after a write over a shared connection.
func (h *Handler) refusedToWait(string, wire.Command, route.Route) bool {
	if h.sharedWrite {
		h.ReplyError(wire.ErrWaitShared)
	}
	return h.sharedWrite
}

// performScriptOnUpstream forwards a script without lock keys.
func (h *Handler) performScriptOnUpstream(name string, cmd wire.Command, to route.Route) bool {
	if to.Plane != route.Upstream {
		return false
	}
	h.noteLocking(cmd.Args, &to, h.service.Scripts.Learn(name, cmd.Args))
	h.relay(cmd, upstream.Expectation{Count: 1})
	return true
}

// forwardForReply forwards a command that has one reply and changes no state of the proxy.
func (h *Handler) forwardForReply(cmd wire.Command, to route.Route, settings *config.Settings) {
	spec := to.Spec
	if spec.Is(route.Locking) {
		h.noteLocking(cmd.Args, &to, unruled.Shape{})
	}
	if spec.Is(route.Shareable) && (h.plain == settings || h.mayShare(settings)) {
		switch done, refusal := h.Share(cmd, h.client.Version, settings); {
		case refusal != "":
			h.ReplyError(refusal)
			return
		case done:
			h.sharedWrite = h.sharedWrite || spec.Write()
			return
		}
	}
	h.relay(cmd, upstream.Expectation{Count: 1})
	if spec == nil || spec.Blocking() {
		h.MayBlock()
	}
}

// mayShare tells whether the client has nothing of its own at the upstream: no connection, no
// user, no other database than the proxy's, no name that the upstream should show, and nothing
// that it wants to be told of.
func (h *Handler) mayShare(settings *config.Settings) bool {
	if h.Upstream() != nil || settings.Config.UpstreamConnections != config.ConnectionsShared || settings.Users.AtUpstream {
		return false
	}
	return h.tracking.Mode == nil && !h.listensToMasters() && h.client.IsOrdinary(settings.Upstream.DB)
}

// open opens the upstream connection if there is none. If that fails, it answers the command
// with an error and returns false.
func (h *Handler) open(cmd wire.Command) bool {
	if h.Upstream() != nil {
		return true
	}
	if refusal := h.tryOpenFor(cmd); refusal != "" {
		h.ReplyError(refusal)
		return false
	}
	return true
}

// tryOpenFor is TryOpen. Where there is no upstream, the refusal names the first key that no
// lock rule matches, if it is certain that this argument is a key and no value.
func (h *Handler) tryOpenFor(cmd wire.Command) (refusal wire.Error) {
	if refusal = h.TryOpen(); refusal != wire.ErrUpstreamNone || h.spec.Load() == nil {
		return refusal
	}
	rules := h.Env.Active.Load().Router.Rules
	if keys, exact := h.spec.Load().AppendKeys(nil, cmd.Args); exact {
		for _, at := range keys {
			if !rules.Covers(h.database(), cmd.Args[at]) {
				return wire.ErrNotALock(cmd.Args[at])
			}
		}
	}
	return refusal
}

// relay forwards a command as it came. It opens the upstream connection if needed.
func (h *Handler) relay(cmd wire.Command, want upstream.Expectation) {
	if !h.open(cmd) {
		return
	}
	h.sendCaching()
	h.Forward(cmd, want)
}

// performInPipe performs a command on a connection whose replies cannot be counted any more.
func (h *Handler) performInPipe(name string, cmd wire.Command, to route.Route) {
	switch {
	case name == "reset" && len(cmd.Args) == 1:
		h.reset()
	case to.Plane != route.Upstream && h.monitoring:
		h.ReplyAtOnce(string(wire.ErrMonitorKeyspace))
	case to.Plane != route.Upstream || h.subscribesToLocks(name, cmd.Args):
		h.ReplyAtOnce(string(wire.ErrLockInPipe))
	case h.Env.Active.Load().Users.AtUpstream: // the client's user there does not matter here until RESET
		h.relay(cmd, upstream.Expectation{})
	case name == "auth":
		answer := h.authenticate(cmd.Args)
		h.publish() // before the client can act on the answer
		h.ReplyAtOnce(answer)
	case wire.LogsIn(name, cmd.Args):
		h.ReplyAtOnce(string(wire.ErrHelloInPipe))
	default:
		h.relay(cmd, upstream.Expectation{})
	}
}

// noteLocking looks whether a command that is about to be forwarded belongs to a lock that no rule matches.
func (h *Handler) noteLocking(args [][]byte, to *route.Route, script unruled.Shape) {
	if h.service.Unruled == nil || !to.Spec.Is(route.Locking) || !to.Spec.ArityOK(len(args)) {
		return
	}
	h.service.Unruled.See(&unruled.Command{
		Name: to.Spec.Name, Args: args, Keys: to.Keys, DB: h.database(), Script: script, Now: h.Env.Loop.Now(),
		Connection: h.ID(), Library: h.client.LibName, Watches: h.multi.watched.upstream, Ignored: h.Env.Active.Load().Config.Ignore,
	})
}
