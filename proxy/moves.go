package proxy

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

// move is a change of the lock rules that is not yet forgotten.
type move struct {
	was     lockRules
	at      time.Time
	coming  time.Time // until when locks from before may live on keys that became lock keys
	leaving time.Time // and on those that are none any more
}

// over: nothing is held back by it any more.
func (m move) over(now time.Time) bool {
	return !now.Before(m.coming) && !now.Before(m.leaving)
}

// moving returns until when a key is held back; long ago: it is not.
func (r *router) moving(db int, key []byte) time.Time {
	return r.heldUntil(func(rules lockRules) bool { return rules.covers(db, key) })
}

// heldUntil goes through the moves of keys of which covered tells whether they
// were lock keys under some rules, and returns until when locks may live on them
// where they are no more.
func (r *router) heldUntil(covered func(lockRules) bool) time.Time {
	if len(r.moves) == 0 {
		return time.Time{}
	}
	var atUpstream, onMasters time.Time // until when what was granted there may live
	is := covered(r.moves[0].was)
	for i, m := range r.moves {
		was := is
		if is = covered(r.rulesAfter(i)); was == is {
			continue
		}
		// Only if they were served there meanwhile.
		switch {
		case was && !m.at.Before(atUpstream):
			onMasters = m.leaving
		case is && !m.at.Before(onMasters):
			atUpstream = m.coming
		}
	}
	if is {
		return atUpstream
	}
	return onMasters
}

// rulesAfter are those that the i-th move brought.
func (r *router) rulesAfter(i int) lockRules {
	if i+1 < len(r.moves) {
		return r.moves[i+1].was
	}
	return r.rules
}

// A movingRule is one whose keys are held back.
type movingRule struct {
	rule  lockRule
	until time.Time
}

// movingRules are those whose keys are held back now. Keys that are lock keys by
// another rule too are not, which a rule as a whole cannot show.
func (r *router) movingRules(now time.Time) []movingRule {
	var moving []movingRule
	var seen lockRules
	for _, m := range append([]move{{was: r.rules}}, r.moves...) {
		for _, rule := range coverage(m.was) {
			if slices.ContainsFunc(seen, func(other lockRule) bool { return reflect.DeepEqual(rule, other) }) {
				continue
			}
			seen = append(seen, rule)
			if until := r.heldUntil(func(rules lockRules) bool { return rules.comprise(rule) }); now.Before(until) {
				moving = append(moving, movingRule{rule, until})
			}
		}
	}
	return moving
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
	if to.spec.Is(command.Script) {
		for _, arg := range args[min(3, len(args)):] {
			look(arg)
		}
	}
	return until
}

// withRules is a router with other rules. coming and leaving bound the lives
// of the locks that may be held on keys which move. A transaction that began
// under the old rules is told by the era. Moves are forgotten when all are over,
// for each is looked at in the light of those before it.
func (r *router) withRules(rules lockRules, now time.Time, coming, leaving time.Duration) *router {
	next := &router{table: r.table, rules: rules, era: r.era}
	if slices.ContainsFunc(r.moves, func(m move) bool { return !m.over(now) }) {
		next.moves = slices.Clone(r.moves)
	}
	if !sameCoverage(r.rules, rules) {
		next.era++
		next.moves = append(next.moves, move{was: r.rules, at: now, coming: now.Add(coming), leaving: now.Add(leaving)})
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

func (r *router) withTable(table *command.Table) *router {
	next := *r
	next.table = table
	return &next
}

// holdsBack tells whether keys may have to wait because rules have changed.
func (r *router) holdsBack() bool { return len(r.moves) > 0 }

// sameCoverage tells whether two lists of rules call the same keys lock keys,
// as far as writing shows: their order, what they give to a lock without TTL,
// who may use it, and rules within another one do not matter for that.
func sameCoverage(a, b lockRules) bool {
	return reflect.DeepEqual(coverage(a), coverage(b))
}

// coverage is what matters in rules for which keys are lock keys.
func coverage(rules lockRules) lockRules {
	var list lockRules
	for i, rule := range rules {
		if !list.comprise(rule) && !slices.ContainsFunc(rules[i+1:], func(other lockRule) bool { return other.comprises(rule) && !rule.comprises(other) }) {
			rule.defaultTTL, rule.users = 0, nil
			list = append(list, rule)
		}
	}
	slices.SortFunc(list, func(x, y lockRule) int {
		if x.match != y.match {
			return strings.Compare(x.match, y.match)
		}
		return x.db - y.db
	})
	return list
}

// comprise tells whether one of the rules makes another one unnecessary.
func (r lockRules) comprise(rule lockRule) bool {
	return slices.ContainsFunc(r, func(other lockRule) bool { return other.comprises(rule) })
}

// comprises tells whether all keys of another rule are keys of this one too, as
// is plain where this one's glob is a prefix.
func (r lockRule) comprises(other lockRule) bool {
	if r.db != anyDB && r.db != other.db {
		return false
	}
	for _, glob := range other.companions {
		if !slices.Contains(r.companions, glob) {
			return false
		}
	}
	prefix, isPrefix := strings.CutSuffix(r.match, "*")
	return r.match == other.match || isPrefix && isLiteral(prefix) && len(other.match) > len(prefix) && strings.HasPrefix(other.match, prefix)
}
