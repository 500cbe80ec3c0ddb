package effect

import (
	"slices"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
)

// A Rule says which votes on a run are equal. The zero Rule is for scripts and for
// commands that write.
type Rule struct {
	Observes  bool // the command only reads, and is no script
	Unordered int  // the reply is a list of groups of this many elements in any order; 0: order matters
}

// Decide gives the verdict on a run: a quorum of equal votes wins. Deletions get no
// rule of their own, because only the script knows what they mean: Redisson's fair
// lock acquires by deleting its queue. If the run won, ttl is the time for which a
// quorum of the winning votes keeps what it wrote. It is negative if the run wrote
// nothing that expires.
func (r Rule) Decide(answers []quorum.Answer[Result]) (verdict quorum.Verdict, ttl time.Duration) {
	winner, votes := quorum.Largest(answers, anyRun, r.Same)
	if verdict := votes.Agree(); verdict != quorum.Won {
		return verdict, -1
	}
	return quorum.Won, r.TTL(answers, winner)
}

func anyRun(Result) bool { return true }

// Winner is one of the winning votes of a ballot that was won.
func (r Rule) Winner(answers []quorum.Answer[Result]) Result {
	winner, _ := quorum.Largest(answers, anyRun, r.Same)
	return winner
}

// TTL is the time for which a quorum of the winning votes keeps what it wrote. It is
// negative if nothing was written that expires, and 0 if fewer than a quorum voted so.
func (r Rule) TTL(answers []quorum.Answer[Result], winner Result) time.Duration {
	var left []int64
	for _, a := range answers {
		if a.State == quorum.Answered && r.Same(a.Value, winner) {
			left = append(left, a.Value.shortest())
		}
	}
	ttl, _ := quorum.Attained(len(answers), left)
	return time.Duration(ttl) * time.Millisecond
}

// Left is the time for which a quorum of the winning votes keeps key k, at least 1 ms. It is
// 0 if the key does not expire there, or is absent. Masters may differ: a script can set a time of their own clocks.
func (r Rule) Left(answers []quorum.Answer[Result], winner Result, k int) time.Duration {
	var left []int64
	for _, a := range answers {
		if a.State == quorum.Answered && r.Same(a.Value, winner) {
			ttl := a.Value.After[k].PTTL
			if ttl >= 0 {
				ttl = max(1, ttl) // with 0 the key still exists, and expires
			}
			left = append(left, ttl)
		}
	}
	ttl, _ := quorum.AttainedTTL(len(answers), left)
	return time.Duration(max(0, ttl)) * time.Millisecond
}

// Refusal is the reply of a quorum of votes that changed nothing and replied alike,
// or nil. The proxy never invents a refusal, and never passes on what only a minority
// of the masters replied.
func Refusal(answers []quorum.Answer[Result]) []byte {
	x, votes := quorum.Largest(answers,
		func(x Result) bool { return !x.Wrote() },
		sameReply)
	if votes.Granted < quorum.Size(len(answers)) {
		return nil
	}
	return x.Reply
}

// Wrote tells whether the run changed any key.
func (x Result) Wrote() bool { return slices.ContainsFunc(x.Changes(), Change.Wrote) }

// Deleted tells whether the run certainly deleted a key.
func (x Result) Deleted() bool {
	for k := range x.After {
		if x.DeletedKey(k) {
			return true
		}
	}
	return false
}

// DeletedKey tells whether the run certainly deleted key k. It did not if the key may have
// ended of itself between the two looks: the clocks of embedded masters and of old servers go
// on meanwhile.
func (x Result) DeletedKey(k int) bool {
	before, after := x.Before[k], x.After[k]
	return Compare(before, after) == Deleted && !before.mayEndBy(after.Now)
}

// Acquired tells whether the run created a key, and every other key is still there. A run that
// also deletes may have created a wake-up for waiting clients.
func (x Result) Acquired() bool {
	changes := x.Changes()
	return slices.Contains(changes, Created) && !slices.Contains(changes, Deleted)
}

// Changes are what the run did to each key.
func (x Result) Changes() []Change {
	changes := make([]Change, len(x.After))
	for i := range x.After {
		changes[i] = Compare(x.Before[i], x.After[i])
	}
	return changes
}

// givenUp is the TTL, in milliseconds, below which a client gives up a lock: it has ended when the
// client hears of it.
const givenUp = 10

// shortest is the least time, in milliseconds, that a lock written by the run has
// left. It is negative if none of them expires. What is over, or was given up, is no lock.
func (x Result) shortest() int64 {
	least := int64(-1)
	for i, e := range x.Changes() {
		ttl := x.After[i].PTTL
		switch {
		case !e.Wrote() || ttl < 0 || x.After[i].IsOver() || e != Created && ttl < givenUp:
		case least < 0 || ttl < least:
			least = ttl
		}
	}
	return least
}

// LongestTTL is the most time, in milliseconds, that a key written by the run has
// left. It is 0 if none of them expires, or all are over.
func (x Result) LongestTTL() int64 {
	most := int64(0)
	for i, e := range x.Changes() {
		if e.Wrote() && !x.After[i].IsOver() {
			most = max(most, x.After[i].PTTL)
		}
	}
	return most
}

// Same tells whether two votes are equal: the same reply, and the keys in the same
// state afterwards. The change itself does not matter: a re-entrant acquire often
// rewrites the same bytes, and counters that drifted apart change alike.
func (r Rule) Same(a, b Result) bool {
	return r.sameReply(a, b) &&
		slices.EqualFunc(a.After, b.After, func(x, y Image) bool { return SameContent(x, y) || x.IsOver() && y.IsOver() })
}

// sameReply compares unordered lists as sets. The replies of a command that only reads are
// compared by kind: for keys in the same state they may differ by the moment (idle times)
// or by chance (a random member).
func (r Rule) sameReply(a, b Result) bool {
	if r.Observes {
		return resp.SameKind(a.Reply, b.Reply)
	}
	return sameReply(a, b) ||
		r.Unordered > 0 && resp.EquivalentElements(a.Reply, b.Reply, r.Unordered)
}

// sameReply compares replies by content. Nobody knows whether a number counts something, so different
// numbers are alike only if both are times of one key.
func sameReply(a, b Result) bool {
	return resp.Equivalent(a.Reply, b.Reply, func(m, n int64) bool {
		if m <= 1 || n <= 1 { // yes, no, and why not
			return false
		}
		for k := range min(len(a.After), len(b.After)) {
			if a.hasLeft(k, m) && b.hasLeft(k, n) || rdb.HasTimesApart(a.After[k].Dump, b.After[k].Dump, m-n) {
				return true
			}
		}
		return false
	})
}

// hasLeft tells whether key k had so much time left, or was to expire at that time, before or after the
// run. The time is in milliseconds or in whole seconds.
func (x Result) hasLeft(k int, n int64) bool {
	took := resp.ExpiryTolerance + max(0, x.After[k].Now-x.Before[k].Now)
	for _, i := range []Image{x.Before[k], x.After[k]} {
		for _, time := range []int64{i.PTTL, i.Expiry()} {
			if i.PTTL >= 0 && (Near(n, time, took) || n == time/1000 || n == time/1000+1) {
				return true
			}
		}
	}
	return false
}
