package redlock

import (
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// won is the vote that a run was won by; nil: it was not won.
func (r *RunRequest) won(answers []quorum.Answer[effect.Result], verdict Verdict) *effect.Result {
	if verdict != Won {
		return nil
	}
	winner := r.rule.Winner(answers)
	return &winner
}

// coverRun makes the TTL that a won run gave known to the masters' markers
// before anybody hears of it. Without that it is not won, nor if that took so long
// that nothing of it is left.
func (l *Locker) coverRun(b *ballot[effect.Result], r *RunRequest) bool {
	winner := r.rule.Winner(b.answers)
	lives := l.covered(time.Duration(winner.LongestTTL()) * time.Millisecond)
	known := 0
	for _, a := range b.answers {
		if a.State == quorum.Answered && a.LongestTTL >= lives && r.rule.Same(a.Value, winner) {
			known++
		}
	}
	if known >= quorum.Size(len(b.answers)) {
		return true
	}
	ttl := r.rule.TTL(b.answers, winner)
	return l.raise(r.DB, lives) == Won && (ttl < 0 || l.validity(ttl, elapsed(b.started, time.Now())) > 0)
}

// settleRun gives each master that answered its part of the verdict.
func (l *Locker) settleRun(b *ballot[effect.Result], r *RunRequest) {
	won := r.won(b.answers, b.verdict)
	for i, a := range b.answers {
		if a.State != quorum.Awaited {
			l.settleVote(r, won, b.answers, i, a)
		}
	}
}

// settleVote gives one master its part of the verdict: what it did against it
// is put back, and a deletion or an extension that it missed stays owed.
func (l *Locker) settleVote(r *RunRequest, won *effect.Result, answers []quorum.Answer[effect.Result], i int, a quorum.Answer[effect.Result]) {
	if won != nil && a.State.Heard() && r.rule.Same(a.Value, *won) {
		return
	}
	s := l.masters[i].stream(r.DB)
	now := time.Now()
	if won != nil && (a.State.Failed() && !a.State.Heard() || resp.IsNoScript(a.Value.Reply)) {
		for _, d := range missedRun(*won, r.Keys, now) {
			s.Deliver(d, now, !a.State.Heard())
		}
	}
	if a.State == quorum.Unknown && (won == nil || !won.Wrote()) {
		for _, d := range possibleGrants(answers, r.Keys) {
			s.Deliver(d, now, true)
			l.undone(i, a.State)
		}
	}
	for k := range a.Value.After {
		before, after := a.Value.Before[k], a.Value.After[k]
		due := effect.Due(won, k, before, after, r.Scrap, l.settings().MasterTimeout)
		switch {
		case effect.Compare(after, due) == effect.Created:
			putBack(s, r.Keys[k], due, after, now)
		case effect.Compare(after, due).Wrote():
			s.Deliver(&stream.Debt{Exact: effect.AppendUndo(nil, r.Keys[k], due, after)}, now, false)
		default:
			continue
		}
		l.undone(i, a.State)
	}
}

// possibleGrants is what a master whose answer was lost may have created, as
// far as the others tell: only strings too long to be a shared constant.
func possibleGrants(answers []quorum.Answer[effect.Result], keys [][]byte) []*stream.Debt {
	var debts []*stream.Debt
	for k, key := range keys {
		for _, a := range answers {
			if !a.State.Heard() || a.Value.After == nil || effect.Compare(a.Value.Before[k], a.Value.After[k]) != effect.Created {
				continue
			}
			if v, ok := rdb.StringValue(a.Value.After[k].Dump); ok && len(v) >= stream.ShortValue {
				debts = append(debts, &stream.Debt{Script: releaseScript.text, Key: string(key), Value: string(v), Blind: true})
				break
			}
		}
	}
	return debts
}

// missedRun is what a run has to do on a master that missed it, by value, where the
// lock is a string: delete it, or give it its new expiry.
func missedRun(x effect.Result, keys [][]byte, now time.Time) []*stream.Debt {
	var debts []*stream.Debt
	for k, did := range x.Changes() {
		v, ok := rdb.StringValue(x.Before[k].Dump)
		if !ok {
			continue
		}
		d := &stream.Debt{Key: string(keys[k]), Value: string(v)}
		left, given := x.Before[k].PTTL, x.After[k].PTTL
		switch {
		case did == effect.Deleted:
			if d.Script = releaseScript.text; left >= 0 {
				d.Life = stream.NewLifetime(now.Add(time.Duration(left) * time.Millisecond))
			}
		case did == effect.Moved && given > 0:
			d.Script, d.Ttl = expireScript.text, now.Add(time.Duration(given)*time.Millisecond)
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
func putBack(s *masterDB, key []byte, before, after effect.Image, now time.Time) {
	m := stream.Sending{Frames: effect.AppendUndo(nil, key, before, after)}
	s.Send(stream.Call{Replies: 1, Asker: stream.AskerFunc(func([][]byte, stream.Judgement, error) {})}, m, now)
}
