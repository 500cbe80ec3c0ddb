package redlock

import (
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/roster"
)

// won is the vote that a run was won by; nil: it was not won.
func (r *RunRequest) won(answers []quorum.Answer[examined], verdict Verdict) *examined {
	if verdict != Won {
		return nil
	}
	winner := r.rule.winner(answers)
	return &winner
}

// coverRun makes the TTL that a won run gave known to the masters' markers
// before anybody hears of it. Without that it is not won, nor if that took so long
// that nothing of it is left.
func (l *Locker) coverRun(b *ballot[examined], r *RunRequest) bool {
	winner := r.rule.winner(b.answers)
	lives := l.covered(time.Duration(winner.longest()) * time.Millisecond)
	known := 0
	for _, a := range b.answers {
		if a.State == quorum.Answered && a.LongestTTL >= lives && r.rule.same(a.Value, winner) {
			known++
		}
	}
	if known >= quorum.Size(len(b.answers)) {
		return true
	}
	ttl := r.rule.shortest(b.answers, winner)
	return l.raise(r.DB, lives) == Won && (ttl < 0 || l.validity(ttl, elapsed(b.started, time.Now())) > 0)
}

// settleRun gives each master that answered its part of the verdict.
func (l *Locker) settleRun(b *ballot[examined], r *RunRequest) {
	won := r.won(b.answers, b.verdict)
	for i, a := range b.answers {
		if a.State != quorum.Awaited {
			l.settleVote(r, won, b.answers, i, a)
		}
	}
}

// settleVote gives one master its part of the verdict: what it did against it
// is put back, and a deletion or an extension that it missed stays owed.
func (l *Locker) settleVote(r *RunRequest, won *examined, answers []quorum.Answer[examined], i int, a quorum.Answer[examined]) {
	if won != nil && a.State.Heard() && r.rule.same(a.Value, *won) {
		return
	}
	s := l.masters[i].stream(r.DB)
	now := time.Now()
	if won != nil && (a.State.Failed() && !a.State.Heard() || resp.IsNoScript(a.Value.reply)) {
		for _, d := range missedRun(*won, r.Keys, now) {
			s.deliver(d, now, !a.State.Heard())
		}
	}
	if a.State == quorum.Unknown && (won == nil || !won.wrote()) {
		for _, d := range possibleGrants(answers, r.Keys) {
			s.deliver(d, now, true)
			l.undone(i, a.State)
		}
	}
	for k := range a.Value.after {
		before, after := a.Value.before[k], a.Value.after[k]
		due := due(won, k, before, after, r.Scrap, l.settings().MasterTimeout)
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

// missedRun is what a run has to do on a master that missed it, by value, where the
// lock is a string: delete it, or give it its new expiry.
func missedRun(x examined, keys [][]byte, now time.Time) []*debt {
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
