package handler

import (
	"cmp"

	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// performHere performs REDLOCK, and the subcommands of CLIENT that are about the proxy's
// sessions. The upstream never gets them, and the masters get TOKEN only. They are refused in
// a transaction, because EXEC could not put their replies among those of one plane.
func (h *Handler) performHere(name string, cmd wire.Command, to route.Route) {
	switch {
	case h.InPipe():
		h.abort(wire.ErrInPipe)
	case to.Spec.Is(route.Console) && h.service.Console == nil:
		h.abort(wire.ErrUnsupported(name))
	case h.inTransaction():
		h.abort(cmp.Or(to.Spec.Check(cmd.Args), wire.ErrNotInMulti))
	case name == "redlock|token" && to.Plane == route.Locks && to.Spec.ArityOK(len(cmd.Args)):
		h.performOnLocks(name, cmd.Args, to)
	case !h.mayAnswer(name, cmd.Args, to.Spec):
	case to.Spec.Is(route.AboutClients):
		h.performOnClients(name, cmd.Args)
	default:
		call := console.Command{DB: h.client.DB, Args: cmd.Args, Route: to, Version: h.client.Version, User: h.account.Load(), Client: h, From: h.entry}
		var reply []byte
		if !to.Spec.Is(route.ForLockers) { // it shows other users' clients, as CLIENT LIST does
			reply = []byte(h.lacksRight("LIST"))
		}
		if len(reply) == 0 {
			h.Busy(func() { reply = h.service.Console.Do(h.Context(), nil, call) })
		}
		h.ReplyBytes(reply)
	}
}
