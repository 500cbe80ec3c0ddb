package handler

import (
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// performSplit performs a command whose keys are on both planes. It runs both halves at the
// same time and joins their replies. If one half fails, the client gets its error.
func (h *handler) performSplit(name string, cmd wire.Command, to route.Route) {
	if !h.Settle() || h.refusedAsRestricted(name) || !h.open() {
		return
	}
	h.hearing.TellCaching()
	upstreamHalf, lockHalf := to.Halves(cmd.Args)
	fromUpstream, ok := h.AskWhile(resp.AppendCommand(nil, upstreamHalf...), func() {
		h.runOnLocks(lockHalf, route.OfLockKeys(to.Spec, len(lockHalf)))
	})
	if !ok {
		return
	}
	if name == "mget" {
		h.ReplyBytes(to.JoinValues(fromUpstream, h.lockReply))
		return
	}
	h.ReplyBytes(route.JoinCounts(fromUpstream, h.lockReply))
}
