package handler

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/unruled"
)

// noteLocking looks whether a command that is about to be forwarded belongs to a lock that no rule matches.
func (h *Handler) noteLocking(args [][]byte, to *route.Route, script unruled.Shape) {
	if h.service.Unruled == nil || !to.Spec.Is(command.Locking) || !to.Spec.ArityOK(len(args)) {
		return
	}
	h.service.Unruled.See(&unruled.Command{
		Name: to.Spec.Name, Args: args, Keys: to.Keys, DB: h.database(), Script: script, Now: h.Env.Clock.Now(),
		Connection: h.ID(), Library: h.client.LibName, Watches: h.multi.watched.upstream, Ignored: h.Env.Active.Load().Config.Ignore,
	})
}
