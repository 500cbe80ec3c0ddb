package run

import (
	"bytes"
	"slices"
	"strconv"
	"sync"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// won returns the winning vote of a run, or nil if the run was not won.
func (r *Request) won(answers []quorum.Answer[effect.Result], verdict ballot.Verdict) *effect.Result {
	if verdict != ballot.Won {
		return nil
	}
	winner := r.rule.Winner(answers)
	return &winner
}

// coverRun puts the TTL that a won run gave on record in the masters' markers, before
// anybody hears that it was won. It returns false if a quorum did not record it, or if
// that took so long that no validity is left. Then the run is not won.
func (u *Runner) coverRun(b *ballot.Ballot[effect.Result], r *Request) bool {
	winner := r.rule.Winner(b.Answers)
	lives := u.box.Masters.Covered(time.Duration(winner.LongestTTL()) * time.Millisecond)
	known := 0
	for _, a := range b.Answers {
		if a.State == quorum.Answered && a.LongestTTL >= lives {
			known++
		}
	}
	if known >= quorum.Size(len(b.Answers)) {
		return true
	}
	ttl := r.rule.TTL(b.Answers, winner)
	return u.raise(r.DB, lives) == ballot.Won && (ttl < 0 || u.box.Validity(ttl, b.Elapsed(time.Now())) > 0)
}

// raise puts a TTL on record on a quorum of masters, for a lock whose TTL was unknown
// until it was won.
func (u *Runner) raise(db int, ttl time.Duration) ballot.Verdict {
	lives := u.box.Masters.Covered(ttl)
	return ballot.Poll(u.box, master.AppendRaise(nil, db, lives), ballot.Question[bool]{
		Kind:    ballot.KindExtend,
		DB:      db,
		Replies: 1,
		TTL:     lives,
		Parse:   ballot.ParseDone,
		Vote:    ballot.VoteOf,
		Decide:  ballot.Tallied(quorum.Tally.Acquire),
	}).Verdict
}

// settleVote applies the verdict to one master. What the master did against the verdict
// is put back. A deletion or an extension that it missed is queued.
func (u *Runner) settleVote(b *ballot.Ballot[effect.Result], r *Request, won *effect.Result, deleted *deletions, i int, a quorum.Answer[effect.Result]) {
	if won != nil && a.State.Heard() && r.rule.Same(a.Value, *won) {
		return
	}
	s := u.box.Masters.At(i).Stream(r.DB)
	now, timeout := time.Now(), u.box.Masters.Limits().MasterTimeout
	if won != nil && !a.State.Heard() {
		for _, d := range missedRun(*won, r.Keys, now) {
			// rule: a release that a run missed does not spare a write that comes late
			d.Blind = s.OwesWrite(d.Key, b.Started)
			s.Deliver(d, now, true)
		}
	}
	if won != nil && len(r.Watches) > 0 && (a.State == quorum.Unasked || a.Value.Aborted) {
		// rule: a hash that a won run deleted elsewhere is mended on a master that was not asked
		u.mendUnguarded(r, *won, a.Value.Aborted)
	}
	if won != nil && won.Wrote() && isTooLarge(a) {
		// rule: a master whose copy was too large for a run is told what the others did
		u.mend(r.DB, r.Keys)
	}
	if a.State == quorum.Unknown && (won == nil || !won.Wrote()) {
		for _, d := range possibleGrants(b.Answers, r.Keys) {
			s.Deliver(d, now, true)
			u.box.Undone(i, a.State)
		}
	}
	for k := range a.Value.After {
		before, after := a.Value.Before[k], a.Value.After[k]
		// The others may have read no key: a watched one had changed there.
		if won != nil && k < len(won.Before) && before.There() && won.Before[k].There() && !effect.SameContent(before, won.Before[k]) && !isQueue(before) {
			// rule: a copy that differed before a won run is mended
			u.mender.Mend(r.DB, string(r.Keys[k]))
		}
		due := effect.Due(won, k, before, after, r.Scrap, timeout)
		switch did := effect.Compare(after, due); {
		case did == effect.Created && won == nil && deleted.byQuorum(b, k, i, before, timeout):
			u.mender.Mend(r.DB, string(r.Keys[k])) // what was put back elsewhere
			continue
		case did.Wrote():
			u.putBack(s, r, k, due, after, now)
			// Maybe nobody holds what was deleted: a quorum does not have this copy, or it was a late grant that is
			// being undone. And a master that was held up misread its expiry, so it may spare the copy.
			if did == effect.Created || after.Now-before.Now > resp.ExpiryTolerance {
				u.mender.Mend(r.DB, string(r.Keys[k]))
			}
		default:
			continue
		}
		u.box.Undone(i, a.State)
	}
}

// deletions are the copies that masters deleted in a ballot that was not won.
type deletions struct {
	mu  sync.Mutex
	all []deletion
}

type deletion struct {
	key    int
	was    effect.Image
	by     quorum.Set
	inTime bool // one of them came before the ballot ended
}

// byQuorum notes that a master deleted its copy of key k. It tells whether that came late, and a quorum
// has deleted the same lock by now. Then the lock is released, and nobody may hold it again: its client
// may have repeated the release elsewhere, and heard that there is no lock. What only lists those that wait
// is no lock. A lock that the client has taken again since then, with the same content, is another lock: no
// copy of it was deleted in time, and it ends later by MasterTimeout at least, because the release was given up
// first. If the masters' clocks are further apart than half of that, all copies are put back.
func (d *deletions) byQuorum(b *ballot.Ballot[effect.Result], k, master int, was effect.Image, timeout time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	at := slices.IndexFunc(d.all, func(e deletion) bool {
		return e.key == k && effect.SameContent(e.was, was) && effect.Near(e.was.Expiry(), was.Expiry(), timeout.Milliseconds()/2)
	})
	if at < 0 {
		at, d.all = len(d.all), append(d.all, deletion{key: k, was: was})
	}
	e, isLate := &d.all[at], b.Answers[master].State == quorum.Awaited
	e.by |= 1 << master
	e.inTime = e.inTime || !isLate
	return isLate && e.inTime && e.by.Len() >= quorum.Size(len(b.Answers)) && !isQueue(was)
}

// mendUnguarded starts to mend what a won run deleted and a master has that did not pass its guard, or was
// not looked at in time. If the master was not asked, it is told by value to delete a string. Nothing else
// tells it to delete a hash or a list, which it would keep until the end of its TTL.
func (u *Runner) mendUnguarded(r *Request, won effect.Result, aborted bool) {
	for k, did := range won.Changes() {
		if _, isString := rdb.StringValue(won.Before[k].Dump); did == effect.Deleted && (aborted || !isString) {
			u.mender.Mend(r.DB, string(r.Keys[k]))
		}
	}
}

// possibleGrants returns the undos of what a master may have created if its answer was
// lost. The other masters' answers show that. Only strings too long to be a shared
// constant are undone.
func possibleGrants(answers []quorum.Answer[effect.Result], keys [][]byte) []*stream.Debt {
	var debts []*stream.Debt
	for k, key := range keys {
		for _, a := range answers {
			if !a.State.Heard() || a.Value.After == nil || effect.Compare(a.Value.Before[k], a.Value.After[k]) != effect.Created {
				continue
			}
			if v := a.Value.After[k].Text(); len(v) >= stream.ShortValue {
				debts = append(debts, &stream.Debt{Script: stream.ReleaseScript, Key: string(key), Value: string(v), Blind: true})
				break
			}
		}
	}
	return debts
}

// missedRun returns what a master that missed a won run must do by value, if the lock is
// a string: delete it, or give it its new expiry. A copy that has another value on the others
// goes, too: nobody holds it any more. But a counter stays, because it is united with theirs, and so does
// a short value, which may be a constant that has come back. A time, which cannot come back, is replaced as
// on the others if neither has a TTL: so the lock of Redis's SETNX page is taken over.
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
		case did == effect.Deleted, did == effect.Changed && len(v) >= stream.ShortValue && !counts(v):
			if d.Script = stream.ReleaseScript; left >= 0 {
				d.Life = stream.NewLifetime(now.Add(time.Duration(left) * time.Millisecond))
			}
		case did == effect.Changed && left == effect.NoExpiry && given == effect.NoExpiry && isTime(v):
			// rule: a time without TTL that a won run replaced is replaced where the run was missed
			d.Exact = effect.AppendUndo(nil, keys[k], x.After[k], x.Before[k])
		case did == effect.Moved && given > 0:
			d.Script, d.Ttl, d.Endless = stream.ExpireScript, now.Add(time.Duration(given)*time.Millisecond), left == effect.NoExpiry
		default:
			continue
		}
		debts = append(debts, d)
	}
	return debts
}

// isTime tells whether a value is a time since 1970 in seconds or in a smaller unit.
func isTime(value []byte) bool {
	t, _ := strconv.ParseFloat(string(value), 64)
	return t >= 1e9 && len(bytes.Trim(value, "0123456789.")) == 0
}

func counts(value []byte) bool {
	_, isNumber := resp.ParseDecimal(value)
	return isNumber
}

// putBack makes a master's key what it was before a run that was not won, or what the winners have. The master does
// so only if the key still is as the run left it. It is told once. If the connection breaks before it answers, nobody
// knows whether it has done that, and the copies are mended, as far as the Mender has room. A counter may have come to the
// same number again, and that was told.
func (u *Runner) putBack(s *stream.Stream, r *Request, k int, due, after effect.Image, now time.Time) {
	key := r.Keys[k]
	mend := func() { u.mender.Mend(r.DB, string(key)) }
	answered := stream.AskerFunc(func(replies [][]byte, _ stream.Judgement, err error) {
		if err != nil || resp.IsError(replies[0]) {
			// rule: UndoneOnce: a run that was not won is put back once
			mend()
		}
	})
	if !s.Send(stream.Call{Replies: 1, Asker: answered}, stream.Sending{Frames: effect.AppendUndo(nil, key, due, after)}, now) {
		mend()
	}
}
