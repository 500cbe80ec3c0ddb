package handler

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/scripts"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/wire"
)

// noteLocking looks whether a command that is about to be forwarded belongs to a lock that no rule matches.
func (h *handler) noteLocking(cmd wire.Command, to route.Route, script scripts.Shape) {
	if h.service.Unruled == nil || !to.Spec.Is(command.Locking) || !to.Spec.ArityOK(len(cmd.Args)) {
		return
	}
	h.service.Unruled.See(unruled.Command{
		Name: to.Spec.Name, Args: cmd.Args, Keys: to.Keys, DB: h.database(), Client: h, Watching: h.watched.upstream,
		Script: script, Ignored: h.Env.Active.Load().Config.Ignore,
	})
}

// Library is how the client's library calls itself. It implements unruled.Client.
func (h *handler) Library() string { return h.client.LibName }
