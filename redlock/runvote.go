package redlock

import (
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// A runRule says which votes on a run are equal.
type runRule struct {
	observes  bool // no script, and it only reads
	unordered int  // the reply lists groups of so many elements, in no order of their own; 0: it does not
}

// decide is the verdict on a run: a quorum of equal votes wins. Whether it deleted
// does not matter, for only the script knows what that means: Redisson's fair lock
// acquires by deleting its queue. Where it is won, ttl is the time for which a
// quorum of the winning votes keeps what it wrote; negative if nothing was written
// that expires.
func (r runRule) decide(answers []quorum.Answer[examined]) (verdict quorum.Verdict, ttl time.Duration) {
	winner, votes := quorum.Largest(answers, anyRun, r.same)
	if verdict := votes.Agree(); verdict != quorum.Won {
		return verdict, -1
	}
	return quorum.Won, r.shortest(answers, winner)
}

func anyRun(examined) bool { return true }

// winner is the vote that a won ballot went to.
func (r runRule) winner(answers []quorum.Answer[examined]) examined {
	winner, _ := quorum.Largest(answers, anyRun, r.same)
	return winner
}

// shortest is the time for which a quorum of the winning votes keeps what it
// wrote; negative if nothing was written that expires.
func (r runRule) shortest(answers []quorum.Answer[examined], winner examined) time.Duration {
	var left []int64
	for _, a := range answers {
		if a.State == quorum.Answered && r.same(a.Value, winner) {
			if ttl := a.Value.shortest(); ttl >= 0 {
				left = append(left, ttl)
			}
		}
	}
	if ttl, ok := quorum.Attained(len(answers), left); ok {
		return time.Duration(ttl) * time.Millisecond
	}
	return -1
}

// refusal is the reply of a vote that changed nothing, if a quorum of such
// votes refused alike. A refusal is never invented, and what only a few
// masters said, whether it refuses or grants, is not passed on.
func refusal(answers []quorum.Answer[examined]) []byte {
	x, votes := quorum.Largest(answers,
		func(x examined) bool { return !x.wrote() },
		func(a, b examined) bool { return resp.Equivalent(a.reply, b.reply) })
	if votes.Granted < quorum.Size(len(answers)) {
		return nil
	}
	return x.reply
}

func (x examined) wrote() bool { return slices.ContainsFunc(x.effects(), effect.wrote) }

func (x examined) released() bool { return slices.Contains(x.effects(), keyDeleted) }

// acquired tells whether the run made a key and deleted none. One that deletes may
// make a wake-up for those that wait.
func (x examined) acquired() bool {
	return slices.Contains(x.effects(), keyCreated) && !x.released()
}

func (x examined) effects() []effect {
	effects := make([]effect, len(x.after))
	for i := range x.after {
		effects[i] = change(x.before[i], x.after[i])
	}
	return effects
}

// shortest is the least time, in milliseconds, that a key which the run wrote
// has left; negative if none of them expires. A latch that is as good as gone
// does not count beside a lock that stays.
func (x examined) shortest() int64 {
	least, passing := int64(-1), int64(-1)
	others := false
	for i, e := range x.effects() {
		ttl := x.after[i].pttl
		switch {
		case x.after[i].passing():
			passing = ttl
		case !e.wrote():
			others = others || !x.after[i].absent()
		case ttl >= 0 && (least < 0 || ttl < least):
			least, others = ttl, true
		default:
			others = true
		}
	}
	if !others {
		return passing
	}
	return least
}

// longest is the most time, in milliseconds, that a key which the run wrote has
// left; 0 if none of them expires.
func (x examined) longest() int64 {
	most := int64(0)
	for i, e := range x.effects() {
		if e.wrote() {
			most = max(most, x.after[i].pttl)
		}
	}
	return most
}

// same tells whether votes are equal: the same answer, and the keys in the same state afterwards. What
// changed does not matter: a re-entrant acquire often rewrites the same bytes,
// and counters that drifted apart change alike.
func (r runRule) same(a, b examined) bool {
	if len(a.after) != len(b.after) || !r.sameReply(a.reply, b.reply) {
		return false
	}
	return slices.EqualFunc(a.after, b.after, func(x, y image) bool { return rdb.Same(x.lasting(), y.lasting()) })
}

// sameReply compares replies by their shape, and lists that have no order of
// their own as sets. What a plain reading command says of keys in the same
// state may differ by the moment (idle times) or by chance (a random member).
func (r runRule) sameReply(a, b []byte) bool {
	if r.observes {
		return resp.SameKind(a, b)
	}
	return resp.Equivalent(a, b) ||
		r.unordered > 0 && len(a) > 0 && len(b) > 0 && a[0] == '*' && b[0] == '*' && resp.EquivalentElements(a, b, r.unordered)
}
