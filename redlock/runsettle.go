package redlock

import (
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
)

// result is what a closed ballot on a run came to.
type result struct {
	verdict Verdict
	winner  examined // the vote a won ballot went to; empty if it was not won
}

// effect is what the run did to key k, if it was won.
func (came *result) effect(k int) effect {
	w := came.winner
	if came.verdict != Won || w.after == nil {
		return keyStayedAbsent
	}
	return change(w.before[k], w.after[k])
}

// wrote tells whether the run was won by a vote that changed something.
func (came *result) wrote() bool { return came.verdict == Won && came.winner.wrote() }

func (r *RunRequest) result(answers []quorum.Answer[examined], verdict Verdict) result {
	came := result{verdict: verdict}
	if verdict == Won {
		came.winner = r.winner(answers)
	}
	return came
}

// coverRun makes the TTL that a won run gave known to the masters' markers
// before anybody hears of it. Without that it is not won, nor if that took so long
// that nothing of it is left.
func (l *Locker) coverRun(b *ballot[examined], r *RunRequest) bool {
	winner := r.winner(b.answers)
	lives := l.covered(time.Duration(winner.longest()) * time.Millisecond)
	known := 0
	for _, a := range b.answers {
		if a.State == quorum.Answered && a.LongestTTL >= lives && r.sameVote(a.Value, winner) {
			known++
		}
	}
	if known >= quorum.Size(len(b.answers)) {
		return true
	}
	ttl := r.shortest(b.answers, winner)
	return l.raise(r.DB, lives) == Won && (ttl < 0 || l.validity(ttl, elapsed(b.started, time.Now())) > 0)
}

// settleRun gives each master that answered its part of the verdict.
func (l *Locker) settleRun(b *ballot[examined], r *RunRequest) {
	came := r.result(b.answers, b.verdict)
	for i, a := range b.answers {
		if a.State != quorum.Awaited {
			l.settleVote(r, came, b.answers, i, a)
		}
	}
}

// settleVote gives one master its part of the verdict: what it did against it
// is put back, and a deletion or an extension that it missed stays owed.
func (l *Locker) settleVote(r *RunRequest, came result, answers []quorum.Answer[examined], i int, a quorum.Answer[examined]) {
	if came.verdict == Won && a.State.Heard() && r.sameVote(a.Value, came.winner) {
		return
	}
	s := l.masters[i].stream(r.DB)
	now := time.Now()
	if a.State.Failed() && !a.State.Heard() || resp.IsNoScript(a.Value.reply) {
		for _, d := range came.winner.missed(r.Keys, now) {
			s.deliver(d, now, !a.State.Heard())
		}
	}
	if a.State == quorum.Unknown && !came.wrote() {
		for _, d := range possibleGrants(answers, r.Keys) {
			s.deliver(d, now, true)
			l.undone(i, a.State)
		}
	}
	for k := range a.Value.after {
		before, after := a.Value.before[k], a.Value.after[k]
		due := r.due(&came, k, before, after, l.settings().MasterTimeout)
		switch {
		case change(after, due) == keyCreated:
			s.putBack(r.Keys[k], due, after, now)
		case change(after, due).wrote():
			s.deliver(&debt{exact: appendUndo(nil, r.Keys[k], due, after)}, now, false)
		default:
			continue
		}
		l.undone(i, a.State)
	}
}

// due is what key k is to be on a master whose vote was not among the winning
// ones: as it was before, unless there is a reason to leave it.
func (r *RunRequest) due(came *result, k int, before, after image, skew time.Duration) image {
	effect, won := change(before, after), came.effect(k)
	switch {
	case r.Scrap && effect != keyCreated:
		return after
	case won == keyDeleted && goesToo(effect, before, came.winner.before[k], skew):
		return absentImage
	case effect == keyDeleted && won.wrote():
		return after
	case counted(came, k, after):
		return notBehind(came.winner.after[k], after)
	case effect == keyKept || effect == keyMoved:
		return after // its expiry may have been moved again since, by who holds the lock
	}
	return before
}

// counted tells whether a run that was won has left an integer in key k, there and
// on this master.
func counted(came *result, k int, after image) bool {
	if !came.effect(k).wrote() {
		return false
	}
	_, won := resp.ParseDecimal(came.winner.after[k].text())
	_, here := resp.ParseDecimal(after.text())
	return won && here
}

// notBehind is what a counter is to be on a master where it came to something else
// than on the others. Put back, it would be further behind; one that is ahead has
// what the others are about to have, from another process.
func notBehind(won, after image) image {
	most, _ := resp.ParseDecimal(won.text())
	if n, _ := resp.ParseDecimal(after.text()); n >= most {
		return after
	}
	return image{dump: won.dump, pttl: after.pttl, now: after.now}
}

// goesToo tells whether a master's copy goes with those that the others deleted,
// where the run left one. A counter that drifted is only counted down where the
// others release, and the copy would outlive its lock. A queue stays as it was
// where the lock before it ends a little later, and who was served would stay
// first in it. That cannot be a later lock's vote: the quorum that deleted did
// not have it then.
func goesToo(did effect, before, others image, skew time.Duration) bool {
	switch did {
	case keyChanged:
		return true
	case keyKept, keyMoved:
		return rdb.Same(before.dump, others.dump) && near(before.pttl, others.pttl, skew.Milliseconds()+expiryTolerance)
	}
	return false
}

// possibleGrants is what a master whose answer was lost may have created, as
// far as the others tell: only strings too long to be a shared constant.
func possibleGrants(answers []quorum.Answer[examined], keys [][]byte) []*debt {
	var debts []*debt
	for k, key := range keys {
		for _, a := range answers {
			if !a.State.Heard() || a.Value.after == nil || change(a.Value.before[k], a.Value.after[k]) != keyCreated {
				continue
			}
			if v, ok := rdb.StringValue(a.Value.after[k].dump); ok && len(v) >= shortValue {
				debts = append(debts, &debt{script: releaseScript, key: string(key), value: string(v), blind: true})
				break
			}
		}
	}
	return debts
}

// missed is what a run has to do on a master that missed it, by value, where the
// lock is a string: delete it, or give it its new expiry.
func (x examined) missed(keys [][]byte, now time.Time) []*debt {
	var debts []*debt
	for k, effect := range x.effects() {
		v, ok := rdb.StringValue(x.before[k].dump)
		if !ok {
			continue
		}
		d := &debt{key: string(keys[k]), value: string(v)}
		left, given := x.before[k].pttl, x.after[k].pttl
		switch {
		case effect == keyDeleted:
			if d.script = releaseScript; left >= 0 {
				d.life = &lifetime{until: now.Add(time.Duration(left) * time.Millisecond)}
			}
		case effect == keyMoved && given > 0:
			d.script, d.ttl = expireScript, now.Add(time.Duration(given)*time.Millisecond)
		default:
			continue
		}
		debts = append(debts, d)
	}
	return debts
}

// putBack gives a master back what it deleted in vain, if nothing has come in
// its place since: an element that was popped, or the queue of those that wait.
// That is done behind the command that deleted it or not at all: on a later
// connection it may be what somebody else has taken elsewhere meanwhile.
func (s *dbStream) putBack(key []byte, before, after image, now time.Time) {
	m := sending{frames: appendUndo(nil, key, before, after)}
	s.send(call{replies: 1, asker: askerFunc(func([][]byte, roster.Standing, error) {})}, m, now)
}
