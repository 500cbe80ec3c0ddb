package handler

import (
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
)

// refusedAsMoving refuses a command on a key that a change of the rules has moved, and
// returns whether it did.
func (h *handler) refusedAsMoving(r *route.Router, cmd wire.Command, to route.Route) bool {
	until := r.HeldBack(h.database(), cmd.Args, to, time.Now())
	if until.IsZero() {
		return false
	}
	h.abort(wire.ErrMoving(until))
	return true
}
