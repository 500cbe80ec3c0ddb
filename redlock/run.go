package redlock

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// RunRequest is any command on lock keys without a form of its own: scripts,
// hashes, sorted sets, a whole transaction. It is executed unchanged.
type RunRequest struct {
	DB   int
	Keys [][]byte // the lock keys it may touch
	Args [][]byte // the client's command
	// Transaction holds the commands between MULTI and EXEC, instead of Args.
	Transaction [][][]byte
	Watches     []*Watch // what the transaction is conditional on; of the same DB
	// Scripts are texts that EVALSHA runs here by their SHA1, as far as known.
	Scripts  [][]byte
	RESP3    bool // the protocol of the reply
	ReadOnly bool // it cannot write

	unordered int // the reply lists groups of so many elements, in no order of their own; 0: it does not
}

// Run executes a command on every master between two looks at its keys, and
// counts as one vote what came to the same: replies of the same shape and keys
// in the same state afterwards. Won: Reply is a winning master's own, byte for
// byte. Lost: Reply is one by which a quorum of masters refused. What
// a master wrote outside the winning votes is put back exactly as it was.
func (l *Locker) Run(ctx context.Context, r RunRequest) Outcome {
	r.Keys = slices.Clone(r.Keys) // undos outlive the call, and the caller's memory
	for i, key := range r.Keys {
		r.Keys[i] = bytes.Clone(key)
	}
	r.unordered = r.unorderedGroup()
	e := &examination{keys: r.Keys, commands: [][][]byte{r.Args}, resp3: r.RESP3}
	if r.Transaction != nil {
		e.commands, e.transaction = r.Transaction, true
	}
	// A master that has forgotten a script since it was loaded is asked once
	// more; a script that does not compile is not to be had then either.
	var flushed, reloaded atomic.Bool
	q := question[examined]{
		kind:    KindRun,
		db:      r.DB,
		keys:    r.Keys,
		frames:  e.append(nil),
		replies: e.replies(),
		parse: func(replies [][]byte) (examined, error) {
			skip := len(replies) - e.replies() // a guard's
			x, err := e.parse(replies[skip:])
			switch {
			case err != nil:
			case !guarded(replies[:skip]):
				err = errUnable
			case len(r.Scripts) > 0 && !reloaded.Load() && (isNoScript(x.reply) || r.Transaction != nil && bytes.Contains(x.reply, []byte("\r\n-NOSCRIPT"))):
				flushed.Store(true)
				err = errNoScript
			case x.blind:
				err = errBlind
			case x.failed:
				err = errUnable
			}
			return x, err
		},
		vote: func(x examined) Vote { return voteOf(x.wrote()) },
		decide: func(answers []answer[examined], elapsed time.Duration) Verdict {
			verdict := l.decideRun(&r, answers, elapsed)
			if verdict == NoQuorum && flushed.Load() && slices.ContainsFunc(answers, isPending) {
				return Pending // all are heard before they are asked once more
			}
			return verdict
		},
		late: func(b *ballot[examined], i int, a answer[examined], verdict Verdict) {
			ballot := r.result(b.answers, verdict)
			l.settleVote(&r, ballot, b.answers, i, a)
		},
	}
	for _, text := range r.Scripts {
		sum := sha1.Sum(text)
		q.load = append(q.load, loadable{sha: hex.EncodeToString(sum[:]), text: text})
	}
	if len(r.Watches) > 0 {
		q.replies += guardReplies * len(r.Watches)
		q.each = func(i int) []byte {
			var frames []byte
			for _, w := range r.Watches {
				guard := w.guard(i)
				if guard == nil {
					return nil
				}
				frames = append(frames, guard...)
			}
			return append(frames, q.frames...)
		}
	}
	if l.mayCreate(&r) {
		pass, err := l.turns.take(ctx, r.DB, r.Keys...)
		if err != nil {
			return Outcome{Verdict: NoQuorum, Asked: len(l.masters), Needed: quorum(len(l.masters))}
		}
		defer pass()
		q.creates = true
	}
	b := hold(l, q)
	l.settleRun(b, &r)
	if flushed.Load() && b.verdict == NoQuorum {
		reloaded.Store(true)
		b = hold(l, q)
		l.settleRun(b, &r)
	}
	return r.outcome(b)
}

// mayCreate tells whether the run takes turns with acquires. A script that
// only deletes is a release and is never held back.
func (l *Locker) mayCreate(r *RunRequest) bool {
	if r.ReadOnly {
		return false
	}
	if r.Transaction != nil {
		return true
	}
	var text []byte
	if len(r.Scripts) == 1 {
		text = r.Scripts[0]
	} else if len(r.Args) > 1 && (equalFold(r.Args[0], "EVAL") || equalFold(r.Args[0], "EVAL_RO")) {
		text = r.Args[1]
	}
	return text == nil || !l.releases.knows(text)
}

func equalFold(b []byte, name string) bool { return strings.EqualFold(string(b), name) }

func (r *RunRequest) outcome(b *ballot[examined]) Outcome {
	o := b.outcome()
	switch o.Verdict {
	case Won:
		o.Reply = r.winner(b.answers).reply
	case Lost:
		if o.Reply = refusal(b.answers); o.Reply == nil {
			o.Verdict = NoQuorum
		}
	}
	return o
}

// decideRun is the verdict on a run: a quorum of equal votes wins, with
// validity left for what it wrote. A run that deleted follows the release rule.
func (l *Locker) decideRun(r *RunRequest, answers []answer[examined], elapsed time.Duration) Verdict {
	all, votes := plurality(answers, anyRun, r.sameVote)
	verdict := votes.agreement()
	if verdict == Won {
		if ttl := r.shortest(answers, all); ttl >= 0 && l.validity(ttl, elapsed) <= 0 {
			return Lost
		}
		return Won
	}
	if _, deletions := plurality(answers, examined.released, r.sameVote); deletions.granted > 0 {
		return deletions.release()
	}
	return verdict
}

func anyRun(examined) bool { return true }

func isPending(a answer[examined]) bool { return a.state == pending }

// winner is the vote that a won ballot went to.
func (r *RunRequest) winner(answers []answer[examined]) examined {
	all, votes := plurality(answers, anyRun, r.sameVote)
	if votes.granted >= quorum(len(answers)) {
		return all
	}
	deleting, _ := plurality(answers, examined.released, r.sameVote)
	return deleting
}

// shortest is the time for which a quorum of the winning votes keeps what it
// wrote; negative if nothing was written that expires.
func (r *RunRequest) shortest(answers []answer[examined], winner examined) time.Duration {
	var left []int64
	for _, a := range answers {
		if a.state == answered && r.sameVote(a.value, winner) {
			if ttl := a.value.shortest(); ttl >= 0 {
				left = append(left, ttl)
			}
		}
	}
	if need := quorum(len(answers)); len(left) >= need {
		slices.Sort(left)
		return time.Duration(left[len(left)-need]) * time.Millisecond
	}
	return -1
}

// refusal is the reply of a vote that changed nothing, if a quorum of such
// votes refused alike. A refusal is never invented, and what only a few
// masters said, whether it refuses or grants, is not passed on.
func refusal(answers []answer[examined]) []byte {
	x, votes := plurality(answers,
		func(x examined) bool { return !x.wrote() },
		func(a, b examined) bool { return sameShape(a.reply, b.reply) })
	if votes.granted < quorum(len(answers)) {
		return nil
	}
	return x.reply
}

// result is what a closed ballot on a run came to.
type result struct {
	verdict Verdict
	winner  examined // the vote a won ballot went to
}

func (r *RunRequest) result(answers []answer[examined], verdict Verdict) result {
	if verdict != Won {
		return result{verdict: verdict}
	}
	return result{verdict, r.winner(answers)}
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
// it is put back, and a release that it missed stays owed.
func (l *Locker) settleVote(r *RunRequest, came result, answers []answer[examined], i int, a answer[examined]) {
	if came.verdict == Won && a.state == answered && r.sameVote(a.value, came.winner) {
		return
	}
	s := l.masters[i].stream(r.DB)
	now := time.Now()
	if came.verdict == Won && (a.state.failed() || isNoScript(a.value.reply)) {
		for _, d := range came.winner.missedRelease(r.Keys, now) {
			s.deliver(d, now, false)
		}
	}
	if came.verdict != Won && a.state == unknown {
		for _, d := range possibleGrants(answers, r.Keys) {
			s.deliver(d, now, true)
			l.cfg.Observer.Undone(l.masters[i].name)
		}
	}
	for k := range a.value.after {
		undo := appendUndo(nil, r.Keys[k], a.value.before[k], a.value.after[k])
		if undo != nil {
			s.deliver(&debt{exact: undo}, now, false)
			l.cfg.Observer.Undone(l.masters[i].name)
		}
	}
}

// possibleGrants is what a master whose answer was lost may have created, as
// far as the others tell: only strings too long to be a shared constant.
func possibleGrants(answers []answer[examined], keys [][]byte) []*debt {
	var debts []*debt
	for k, key := range keys {
		for _, a := range answers {
			if a.state != answered || a.value.after == nil || change(a.value.before[k], a.value.after[k]) != keyCreated {
				continue
			}
			if v, ok := stringValue(a.value.after[k].dump); ok && len(v) >= shortValue {
				debts = append(debts, &debt{script: releaseScript, key: key, value: bytes.Clone(v), blind: true})
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
			d := &debt{script: releaseScript, key: keys[k], value: bytes.Clone(v)}
			if left := x.before[k].pttl; left >= 0 {
				d.life = &lifetime{until: now.Add(time.Duration(left) * time.Millisecond)}
			}
			debts = append(debts, d)
		}
	}
	return debts
}

func (x examined) wrote() bool { return slices.ContainsFunc(x.effects(), effect.wrote) }

func (x examined) released() bool { return slices.Contains(x.effects(), keyDeleted) }

func (x examined) effects() []effect {
	effects := make([]effect, len(x.after))
	for i := range x.after {
		effects[i] = change(x.before[i], x.after[i])
	}
	return effects
}

// shortest is the least time, in milliseconds, that a key which the run wrote
// has left; negative if none of them expires. A latch that is as good as gone
// does not count beside what else the run wrote.
func (x examined) shortest() int64 {
	least, passing := int64(-1), int64(-1)
	others := false
	for i, e := range x.effects() {
		ttl := x.after[i].pttl
		switch {
		case !e.wrote():
		case x.after[i].passing():
			passing = ttl
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

// sameVote: the same answer, and the keys in the same state afterwards. What
// changed does not matter: a re-entrant acquire often rewrites the same bytes,
// and counters that drifted apart change alike.
func (r *RunRequest) sameVote(a, b examined) bool {
	if len(a.after) != len(b.after) || !r.sameReply(a.reply, b.reply) {
		return false
	}
	return slices.EqualFunc(a.after, b.after, func(x, y image) bool { return sameState(x.lasting(), y.lasting()) })
}

// sameReply compares replies by their shape, and lists that have no order of
// their own as sets.
func (r *RunRequest) sameReply(a, b []byte) bool {
	return sameShape(a, b) ||
		r.unordered > 0 && len(a) > 0 && len(b) > 0 && a[0] == '*' && b[0] == '*' && sameElements(a, b, r.unordered)
}

func (r *RunRequest) unorderedGroup() int {
	if r.Transaction != nil || len(r.Args) == 0 {
		return 0
	}
	switch strings.ToUpper(string(r.Args[0])) {
	case "HGETALL":
		return 2
	case "SMEMBERS", "SINTER", "SUNION", "SDIFF", "HKEYS", "HVALS":
		return 1
	}
	return 0
}
