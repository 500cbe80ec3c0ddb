package route

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"redlock-proxy/redlock/resp"
)

// When the lock rules change, some keys move: from the upstream to the masters, or
// back. A client may still hold a lock on such a key in the old place, and the new
// place would grant the lock a second time. So the proxy holds a moved key back: it
// answers every command on the key with an error for as long as an old lock can live.
//
//   - Keys that leave the masters are held back for restart_delay or for the longest
//     TTL granted, whichever is longer.
//   - Keys that come from the upstream are held back for max_quarantine, because the
//     proxy does not know the TTLs there.
//
// For the same times a master that may have forgotten its locks does not vote. Locks
// that live longer than max_quarantine, or for ever, are not covered. Nor are other
// proxies: one that still has the old rules goes on granting in the old place.
//
// A key that goes back to the old place need not wait if the new place held it back
// all the time, because then no client got a lock there. So a mistyped rule can be
// put right at once.

// Move is a change of the lock rules that may still hold keys back.
type Move struct {
	Was     Rules     // the rules before the change
	at      time.Time // when the rules changed
	Coming  time.Time // the end of old locks on keys that became lock keys
	leaving time.Time // the end of old locks on keys that are lock keys no more
}

// over tells whether the move holds no key back any more.
func (m Move) over(now time.Time) bool {
	return !now.Before(m.Coming) && !now.Before(m.leaving)
}

// heldUntil follows some keys through the moves and returns the time until which old
// locks on them may live in a place that they left. covered tells whether the keys
// are lock keys under given rules. The result is in the past, or zero, if there are no
// such locks.
func (r *Router) heldUntil(covered func(Rules) bool) time.Time {
	if len(r.Moves) == 0 {
		return time.Time{}
	}
	var atUpstream, onMasters time.Time // the end of locks granted there
	is := covered(r.Moves[0].Was)
	for i, m := range r.Moves {
		was := is
		if is = covered(r.rulesAfter(i)); was == is {
			continue
		}
		// The place that the keys leave granted locks on them only if it did not
		// hold them back all the time.
		switch {
		case was && !m.at.Before(atUpstream):
			onMasters = m.leaving
		case is && !m.at.Before(onMasters):
			atUpstream = m.Coming
		}
	}
	if is {
		return atUpstream
	}
	return onMasters
}

// rulesAfter returns the rules that the i-th move brought.
func (r *Router) rulesAfter(i int) Rules {
	if i+1 < len(r.Moves) {
		return r.Moves[i+1].Was
	}
	return r.Rules
}

// MovingRule is a rule whose keys are held back.
type MovingRule struct {
	Rule  Rule
	Until time.Time
}

// Moving returns the rules, old or current, whose keys are held back at now. Some
// keys of such a rule may not be held back, because another rule makes them lock keys,
// too. The result does not show these.
func (r *Router) Moving(now time.Time) []MovingRule {
	var moving []MovingRule
	var seen Rules
	for _, m := range append([]Move{{Was: r.Rules}}, r.Moves...) {
		for _, rule := range coverage(m.Was) {
			if slices.ContainsFunc(seen, func(other Rule) bool { return reflect.DeepEqual(rule, other) }) {
				continue
			}
			seen = append(seen, rule)
			if until := r.heldUntil(func(rules Rules) bool { return rules.comprise(rule) }); now.Before(until) {
				moving = append(moving, MovingRule{rule, until})
			}
		}
	}
	return moving
}

// HeldBack returns the time until which the proxy must refuse a command because one of
// its keys moved. It returns zero if the command may run. For a script every argument
// counts as a key, because libraries also name keys there.
func (r *Router) HeldBack(db int, args [][]byte, to Route, now time.Time) time.Time {
	var until time.Time
	look := func(key []byte) {
		if t := r.heldUntil(func(rules Rules) bool { return rules.Covers(db, key) }); t.After(until) && now.Before(t) {
			until = t
		}
	}
	for _, at := range to.Keys {
		look(args[at])
	}
	if to.Spec.Is(Script) {
		for _, arg := range args[min(3, len(args)):] {
			look(arg)
		}
	}
	return until
}

// WithRules returns a router with other rules. Old locks live at most for coming on
// keys that become lock keys, and at most for leaving on keys that are lock keys no
// more. If keys move, the new router has a higher Generation; so EXEC can refuse a
// transaction that began under the old rules. WithRules drops the earlier moves when
// all of them are over. It keeps all until then, because the effect of a move depends
// on those before it.
func (r *Router) WithRules(rules Rules, now time.Time, coming, leaving time.Duration) *Router {
	next := &Router{Table: r.Table, Rules: rules, Generation: r.Generation}
	if slices.ContainsFunc(r.Moves, func(m Move) bool { return !m.over(now) }) {
		next.Moves = slices.Clone(r.Moves)
	}
	if !SameCoverage(r.Rules, rules) {
		next.Generation++
		next.Moves = append(next.Moves, Move{Was: r.Rules, at: now, Coming: now.Add(coming), leaving: now.Add(leaving)})
	}
	return next
}

// LeavingFor returns a router in which the last move holds keys that are lock keys no
// more back until the given time. The router must have a move.
func (r *Router) LeavingFor(until time.Time) *Router {
	next := *r
	next.Moves = slices.Clone(r.Moves)
	next.Moves[len(next.Moves)-1].leaving = until
	return &next
}

// WithTable returns a router with another table of commands.
func (r *Router) WithTable(table *Table) *Router {
	next := *r
	next.Table = table
	return &next
}

// HoldsBack tells whether a change of the rules may hold keys back. If it returns
// false, HeldBack returns zero for every command.
func (r *Router) HoldsBack() bool { return len(r.Moves) > 0 }

// SameCoverage tells whether two lists of rules make the same keys lock keys, as far
// as their texts show. The order of the rules does not matter, nor do default TTLs,
// waits, and rules whose keys are all keys of another rule.
func SameCoverage(a, b Rules) bool {
	return reflect.DeepEqual(coverage(a), coverage(b))
}

// coverage reduces rules to what decides which keys are lock keys, in a fixed order.
func coverage(rules Rules) Rules {
	var list Rules
	for i, rule := range rules {
		if !list.comprise(rule) && !slices.ContainsFunc(rules[i+1:], func(other Rule) bool { return other.comprises(rule) && !rule.comprises(other) }) {
			rule.DefaultTTL, rule.Wait, rule.Renew, rule.Release = 0, 0, 0, false
			list = append(list, rule)
		}
	}
	slices.SortFunc(list, func(x, y Rule) int {
		if x.Match != y.Match {
			return strings.Compare(x.Match, y.Match)
		}
		return x.DB - y.DB
	})
	return list
}

// comprise tells whether all keys of a rule are keys of one of these rules, too.
func (r Rules) comprise(rule Rule) bool {
	return slices.ContainsFunc(r, func(other Rule) bool { return other.comprises(rule) })
}

// comprises tells whether all keys of another rule are keys of r, too. It sees this
// only if both globs are equal, or if r's glob is a plain prefix and `*`. Otherwise
// it returns false.
func (r Rule) comprises(other Rule) bool {
	if r.DB != AnyDB && r.DB != other.DB {
		return false
	}
	for _, glob := range other.Companions {
		if !slices.Contains(r.Companions, glob) {
			return false
		}
	}
	prefix, isPrefix := strings.CutSuffix(r.Match, "*")
	return r.Match == other.Match || isPrefix && resp.IsLiteral(prefix) && len(other.Match) > len(prefix) && strings.HasPrefix(other.Match, prefix)
}
