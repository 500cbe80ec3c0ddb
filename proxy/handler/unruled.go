package handler

import (
	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/scripts"
	"redlock-proxy/proxy/unruled"
)

// noteLocking looks whether a command that is about to be forwarded belongs to a lock that no rule matches.
func (h *handler) noteLocking(args [][]byte, to *route.Route, script scripts.Shape) {
	if h.service.Unruled == nil || !to.Spec.Is(command.Locking) || !to.Spec.ArityOK(len(args)) {
		return
	}
	h.service.Unruled.See(&unruled.Command{
		Name: to.Spec.Name, Args: args, Keys: to.Keys, DB: h.database(), Client: h, Script: script, Now: h.Env.Clock.Now(),
	})
}

// Library is how the client's library calls itself. It implements unruled.Client.
func (h *handler) Library() string { return h.client.LibName }

// Watches implements unruled.Client.
func (h *handler) Watches() bool { return h.watched.upstream }

// Ignored implements unruled.Client.
func (h *handler) Ignored() []string { return h.Env.Active.Load().Config.Ignore }
