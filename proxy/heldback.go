package proxy

import (
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// refusedAsMoving answers a command on a key that has moved with the rules.
func (s *session) refusedAsMoving(r *route.Router, cmd wire.Command, to route.Route) bool {
	until := r.HeldBack(s.database(), cmd.Args, to, time.Now())
	if until.IsZero() {
		return false
	}
	s.abort(wire.ErrMoving(until))
	return true
}

// unlessMoved is a's answer, or a refusal where it took or prolonged a lock on a
// key that has moved meanwhile: nobody knew of that lock when it was decided for
// how long the key is held back. A client that hears of no lock has none.
func (p *lockPlane) unlessMoved(a answer, calls ...lockCall) answer {
	router := p.current.Load().Router
	if !router.HoldsBack() || !a.took() {
		return a
	}
	for _, call := range calls {
		if until := router.HeldBack(call.db, call.args, call.route, time.Now()); !until.IsZero() {
			refusal := wire.ErrMoving(until)
			p.meter.Refused(refusal)
			return rejection(a.kind, refusal)
		}
	}
	return a
}

// took tells whether somebody has a lock now, or has it for longer.
func (a answer) took() bool {
	if a.rejected != "" || a.outcome.Verdict != redlock.Won || a.outcome.Err != "" {
		return false
	}
	switch a.kind {
	case redlock.KindAcquire, redlock.KindExtend, redlock.KindSwap:
		return true
	}
	return a.outcome.Lives > 0
}
