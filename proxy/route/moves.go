package route

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"redlock-proxy/proxy/command"
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

//
// Where a key was held back all the time, nobody was granted it there. So a key
// that goes back to where it was before needs no wait: a rule that was mistyped
// is put right at once.

// Move is a change of the lock rules that is not yet forgotten.
type Move struct {
	Was     Rules
	at      time.Time
	Coming  time.Time // until when locks from before may live on keys that became lock keys
	leaving time.Time // and on those that are none any more
}

// over: nothing is held back by it any more.
func (m Move) over(now time.Time) bool {
	return !now.Before(m.Coming) && !now.Before(m.leaving)
}

// moving returns until when a key is held back; long ago: it is not.
func (r *Router) moving(db int, key []byte) time.Time {
	return r.heldUntil(func(rules Rules) bool { return rules.Covers(db, key) })
}

// heldUntil goes through the moves of keys of which covered tells whether they
// were lock keys under some rules, and returns until when locks may live on them
// where they are no more.
func (r *Router) heldUntil(covered func(Rules) bool) time.Time {
	if len(r.Moves) == 0 {
		return time.Time{}
	}
	var atUpstream, onMasters time.Time // until when what was granted there may live
	is := covered(r.Moves[0].Was)
	for i, m := range r.Moves {
		was := is
		if is = covered(r.rulesAfter(i)); was == is {
			continue
		}
		// Only if they were served there meanwhile.
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

// rulesAfter are those that the i-th move brought.
func (r *Router) rulesAfter(i int) Rules {
	if i+1 < len(r.Moves) {
		return r.Moves[i+1].Was
	}
	return r.Rules
}

// A MovingRule is one whose keys are held back.
type MovingRule struct {
	Rule  Rule
	Until time.Time
}

// Moving are those whose keys are held back now. Keys that are lock keys by
// another rule too are not, which a rule as a whole cannot show.
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

// HeldBack returns until when a command has to wait because one of its keys
// has moved; zero: it need not. Among a script's arguments any could be a key.
func (r *Router) HeldBack(db int, args [][]byte, to Route, now time.Time) time.Time {
	var until time.Time
	look := func(key []byte) {
		if t := r.moving(db, key); t.After(until) && now.Before(t) {
			until = t
		}
	}
	for _, at := range to.Keys {
		look(args[at])
	}
	if to.Spec.Is(command.Script) {
		for _, arg := range args[min(3, len(args)):] {
			look(arg)
		}
	}
	return until
}

// WithRules is a router with other rules. coming and leaving bound the lives
// of the locks that may be held on keys which move. A transaction that began
// under the old rules is told by the era. Moves are forgotten when all are over,
// for each is looked at in the light of those before it.
func (r *Router) WithRules(rules Rules, now time.Time, coming, leaving time.Duration) *Router {
	next := &Router{Table: r.Table, Rules: rules, Era: r.Era}
	if slices.ContainsFunc(r.Moves, func(m Move) bool { return !m.over(now) }) {
		next.Moves = slices.Clone(r.Moves)
	}
	if !SameCoverage(r.Rules, rules) {
		next.Era++
		next.Moves = append(next.Moves, Move{Was: r.Rules, at: now, Coming: now.Add(coming), leaving: now.Add(leaving)})
	}
	return next
}

// LeavingFor is a router of which the last move holds back keys that are lock
// keys no more until another time.
func (r *Router) LeavingFor(until time.Time) *Router {
	next := *r
	next.Moves = slices.Clone(r.Moves)
	next.Moves[len(next.Moves)-1].leaving = until
	return &next
}

func (r *Router) WithTable(table *command.Table) *Router {
	next := *r
	next.Table = table
	return &next
}

// HoldsBack tells whether keys may have to wait because rules have changed.
func (r *Router) HoldsBack() bool { return len(r.Moves) > 0 }

// SameCoverage tells whether two lists of rules call the same keys lock keys,
// as far as writing shows: their order, what they give to a lock without TTL,
// who may use it, and rules within another one do not matter for that.
func SameCoverage(a, b Rules) bool {
	return reflect.DeepEqual(coverage(a), coverage(b))
}

// coverage is what matters in rules for which keys are lock keys.
func coverage(rules Rules) Rules {
	var list Rules
	for i, rule := range rules {
		if !list.comprise(rule) && !slices.ContainsFunc(rules[i+1:], func(other Rule) bool { return other.comprises(rule) && !rule.comprises(other) }) {
			rule.DefaultTTL, rule.Users = 0, nil
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

// comprise tells whether one of the rules makes another one unnecessary.
func (r Rules) comprise(rule Rule) bool {
	return slices.ContainsFunc(r, func(other Rule) bool { return other.comprises(rule) })
}

// comprises tells whether all keys of another rule are keys of this one too, as
// is plain where this one's glob is a prefix.
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
	return r.Match == other.Match || isPrefix && isLiteral(prefix) && len(other.Match) > len(prefix) && strings.HasPrefix(other.Match, prefix)
}
