package proxy

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock"
)

// When the lock rules change, some keys move: they were the upstream's and are
// lock keys now, or the other way. A lock on such a key may still be held where
// the key was, and its new home would grant it a second time. So every command
// on a key that has moved is answered with an error for as long as a lock from
// before can live, as the grants of a master that may have forgotten locks do
// not count for so long: keys that leave the masters for restart_delay or the
// longest TTL granted, keys that come from the upstream, whose TTLs nobody here
// knows, for max_quarantine. Locks that live longer, or for ever, are not
// covered; and a proxy that still has the old rules grants in the old place.

// move is a change of the lock rules that is not yet forgotten.
type move struct {
	was     lockRules
	coming  time.Time // until when keys that became lock keys are held back
	leaving time.Time // and those that are none any more
}

// over: nothing is held back by it any more.
func (m move) over(now time.Time) bool {
	return !now.Before(m.coming) && !now.Before(m.leaving)
}

// moving returns until when a key is held back; zero: it is not.
func (r *router) moving(db int, key []byte) time.Time {
	var until time.Time
	covered := r.rules.covers(db, key)
	for _, m := range r.moves {
		switch was := m.was.covers(db, key); {
		case covered && !was && m.coming.After(until):
			until = m.coming
		case was && !covered && m.leaving.After(until):
			until = m.leaving
		}
	}
	return until
}

// heldBack returns until when a command has to wait because one of its keys
// has moved; zero: it need not. Among a script's arguments any could be a key.
func (r *router) heldBack(db int, args [][]byte, to route, now time.Time) time.Time {
	var until time.Time
	look := func(key []byte) {
		if t := r.moving(db, key); t.After(until) && now.Before(t) {
			until = t
		}
	}
	for _, at := range to.keys {
		look(args[at])
	}
	if to.spec != nil && to.spec.treatment == treatScript {
		for _, arg := range args[min(3, len(args)):] {
			look(arg)
		}
	}
	return until
}

// unlessMoved is a's answer, or a refusal where it took or prolonged a lock on a
// key that has moved meanwhile: nobody knew of that lock when it was decided for
// how long the key is held back. A client that hears of no lock has none.
func (p *lockPlane) unlessMoved(a answer, calls ...lockCall) answer {
	router := p.current.load().router
	if len(router.moves) == 0 || !a.took() {
		return a
	}
	for _, call := range calls {
		if until := router.heldBack(call.db, call.args, call.route, time.Now()); !until.IsZero() {
			return rejection(a.kind, errorMoving(until))
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

// withRules is a router with other rules. coming and leaving bound the lives
// of the locks that may be held on keys which move. A transaction that began
// under the old rules is told by the era.
func (r *router) withRules(rules lockRules, now time.Time, coming, leaving time.Duration) *router {
	next := &router{table: r.table, rules: rules, era: r.era}
	next.moves = slices.DeleteFunc(slices.Clone(r.moves), func(m move) bool { return m.over(now) })
	if !sameCoverage(r.rules, rules) {
		next.era++
		next.moves = append(next.moves, move{was: r.rules, coming: now.Add(coming), leaving: now.Add(leaving)})
	}
	return next
}

// leavingFor is a router of which the last move holds back keys that are lock
// keys no more until another time.
func (r *router) leavingFor(until time.Time) *router {
	next := *r
	next.moves = slices.Clone(r.moves)
	next.moves[len(next.moves)-1].leaving = until
	return &next
}

func (r *router) withTable(table *commandTable) *router {
	next := *r
	next.table = table
	return &next
}

// sameCoverage tells whether two lists of rules call the same keys lock keys,
// as far as writing shows: their order and what they give to a lock without
// TTL do not matter for that.
func sameCoverage(a, b lockRules) bool {
	return reflect.DeepEqual(coverage(a), coverage(b))
}

func coverage(rules lockRules) lockRules {
	list := slices.Clone(rules)
	for i := range list {
		list[i].defaultTTL = 0
	}
	slices.SortFunc(list, func(x, y lockRule) int {
		if x.match != y.match {
			return strings.Compare(x.match, y.match)
		}
		return x.db - y.db
	})
	return list
}

// refusedAsMoving answers a command on a key that has moved with the rules.
func (s *session) refusedAsMoving(r *router, cmd command, to route) bool {
	until := r.heldBack(s.database(), cmd.args, to, time.Now())
	if until.IsZero() {
		return false
	}
	s.abort(errorMoving(until))
	return true
}
