package handler

import (
	"cmp"
	"context"

	"redlock-proxy/proxy/console"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// Console answers REDLOCK: it appends the one reply to dst. ctx ends when the client has
// gone.
type Console interface {
	Do(ctx context.Context, dst []byte, call console.Command) []byte
}

// performConsole performs REDLOCK. The upstream never gets it, and the masters get TOKEN
// only. It is refused in a transaction, because EXEC could not put its reply among those of
// one plane.
func (h *handler) performConsole(name string, cmd wire.Command, to route.Route) {
	switch {
	case h.InPipe():
		h.ReplyAtOnce(string(wire.ErrLockInPipe))
	case h.service.Console == nil:
		h.abort(wire.ErrUnsupported(name))
	case h.transaction.State != route.NoTransaction:
		h.abort(cmp.Or(to.Spec.Check(cmd.Args), wire.ErrNotInMulti))
	case name == "redlock|token" && to.Plane == route.Locks && to.Spec.ArityOK(len(cmd.Args)):
		h.performOnLocks(name, cmd.Args, to)
	case h.Settle() && !h.refusedAsRestricted(name):
		call := console.Command{DB: h.client.DB, Args: cmd.Args, Route: to, Version: h.client.Version, User: h.account.Load(), Client: h, From: h.card}
		var reply []byte
		h.Busy(func() { reply = h.service.Console.Do(h.Context(), nil, call) })
		h.ReplyBytes(reply)
	}
}
