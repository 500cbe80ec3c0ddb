package redlock

import (
	"time"
)

// result is what a closed ballot on a run came to.
type result struct {
	verdict Verdict
	winner  examined // the vote a won ballot went to
	release examined // the vote by which masters that missed a release are told; empty if it was none
}

// deleted tells whether the run was won and deleted key k.
func (came *result) deleted(k int) bool {
	w := came.winner
	return came.verdict == Won && w.after != nil && change(w.before[k], w.after[k]) == keyDeleted
}

// wrote tells whether the run was won by a vote that changed something.
func (came *result) wrote() bool { return came.verdict == Won && came.winner.wrote() }

func (r *RunRequest) result(answers []answer[examined], verdict Verdict) result {
	came := result{verdict: verdict}
	switch verdict {
	case Won:
		came.winner = r.winner(answers)
		came.release = came.winner
	case NoQuorum:
		// Nobody can know whether the lock is free now, but its holder has
		// given it up.
		came.release, _ = plurality(answers, examined.released, r.sameVote)
	}
	return came
}

// coverRun makes the TTL that a won run gave known to the masters' markers
// before anybody hears of it. Without that it is not won: it confirms or revokes
// the ballot.
func (l *Locker) coverRun(b *ballot[examined], r *RunRequest) {
	if b.verdict != Won {
		return
	}
	winner := r.winner(b.answers)
	lives := l.covered(time.Duration(winner.longest()) * time.Millisecond)
	known := 0
	for _, a := range b.answers {
		if a.state == answered && a.covers >= lives && r.sameVote(a.value, winner) {
			known++
		}
	}
	if known < quorum(len(b.answers)) && l.raise(r.DB, lives) != Won {
		b.revoke()
		return
	}
	b.confirm()
}

// settleRun gives each master that answered its part of the verdict.
func (l *Locker) settleRun(b *ballot[examined], r *RunRequest) {
	came := r.result(b.answers, b.verdict)
	for i, a := range b.answers {
		if a.state != pending {
			l.settleVote(r, came, b.answers, i, a)
		}
	}
}

// settleVote gives one master its part of the verdict: what it wrote against
// it is put back, and a release that it missed stays owed. A counter that
// drifted on one master is only counted down there where the others release: it
// is deleted as well, or the copy would outlive its lock. That cannot be a later
// lock's vote: the quorum that released did not have it then.
func (l *Locker) settleVote(r *RunRequest, came result, answers []answer[examined], i int, a answer[examined]) {
	if came.verdict == Won && a.state.heard() && r.sameVote(a.value, came.winner) {
		return
	}
	s := l.masters[i].stream(r.DB)
	now := time.Now()
	if a.state.failed() && !a.state.heard() || isNoScript(a.value.reply) {
		for _, d := range came.release.missedRelease(r.Keys, now) {
			s.deliver(d, now, !a.state.heard())
		}
	}
	if a.state == unknown && !came.wrote() {
		for _, d := range possibleGrants(answers, r.Keys) {
			s.deliver(d, now, true)
			l.observer.Undone(l.masters[i].name())
		}
	}
	for k := range a.value.after {
		before, after := a.value.before[k], a.value.after[k]
		effect := change(before, after)
		switch {
		case r.takes && r.Scrap && effect != keyCreated:
			continue
		case r.takes && effect == keyDeleted && !came.wrote():
			s.putBack(r.Keys[k], before, after, now)
			l.observer.Undone(l.masters[i].name())
			continue
		case effect == keyChanged && came.deleted(k):
			before = absentImage
		}
		undo := appendUndo(nil, r.Keys[k], before, after)
		if undo != nil {
			s.deliver(&debt{exact: undo}, now, false)
			l.observer.Undone(l.masters[i].name())
		}
	}
}

// possibleGrants is what a master whose answer was lost may have created, as
// far as the others tell: only strings too long to be a shared constant.
func possibleGrants(answers []answer[examined], keys [][]byte) []*debt {
	var debts []*debt
	for k, key := range keys {
		for _, a := range answers {
			if !a.state.heard() || a.value.after == nil || change(a.value.before[k], a.value.after[k]) != keyCreated {
				continue
			}
			if v, ok := stringValue(a.value.after[k].dump); ok && len(v) >= shortValue {
				debts = append(debts, &debt{script: releaseScript, key: string(key), value: string(v), blind: true})
				break
			}
		}
	}
	return debts
}

// missedRelease is what a release has to do on a master that missed it: delete
// by value, where the lock is a string.
func (x examined) missedRelease(keys [][]byte, now time.Time) []*debt {
	var debts []*debt
	for k, effect := range x.effects() {
		if effect != keyDeleted {
			continue
		}
		if v, ok := stringValue(x.before[k].dump); ok {
			d := &debt{script: releaseScript, key: string(keys[k]), value: string(v)}
			if left := x.before[k].pttl; left >= 0 {
				d.life = &lifetime{until: now.Add(time.Duration(left) * time.Millisecond)}
			}
			debts = append(debts, d)
		}
	}
	return debts
}
