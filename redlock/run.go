package redlock

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
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
	// Scrap: elements that too few masters have go, instead of being put back.
	Scrap bool

	script *meaning     // of its one script, if it has one whose text is known
	gaveUp *atomic.Bool // a try that was not won deleted something somewhere
	rule   runRule
}

// Run executes a command on every master between two looks at its keys, and
// counts as one vote what came to the same: replies of the same shape and keys
// in the same state afterwards. A script that certainly is a release by value
// needs no look (recogniserun.go). Won: Reply is a winning
// master's own, byte for byte. Lost: Reply is one by which a quorum of masters
// refused. What a master wrote outside the winning votes is put back exactly as
// it was. A split vote, as when copies of a lock expire one after the other, is
// tried again like that of an acquire.
func (l *Locker) Run(ctx context.Context, r RunRequest) Outcome {
	if refusal := l.tooFar(&r); refusal != "" {
		return Outcome{Verdict: Lost, Reply: []byte(refusal)}
	}
	script := l.recognise(&r)
	if o, ok := l.runRecognised(r, script); ok {
		return o
	}
	r.script, r.gaveUp = script.meaning, new(atomic.Bool)
	run := func() Outcome { return l.runOnce(ctx, r) }
	if len(r.Watches) > 0 {
		return run()
	}
	o := l.again(ctx, !r.ReadOnly, run)
	if split(o) && l.areMended(ctx, r.DB, r.Keys) {
		o = l.again(ctx, !r.ReadOnly, run)
	}
	return o
}

func (l *Locker) runOnce(ctx context.Context, r RunRequest) Outcome {
	r.gaveUp = cmp.Or(r.gaveUp, new(atomic.Bool))
	r.Keys = slices.Clone(r.Keys) // undos outlive the call, and the caller's memory
	keys := make([]string, len(r.Keys))
	for i, key := range r.Keys {
		r.Keys[i], keys[i] = bytes.Clone(key), string(key)
	}
	r.rule = runRule{
		observes:  r.ReadOnly && r.Transaction == nil && len(r.Args) > 0 && !isScriptCommand(r.Args[0]),
		unordered: r.unorderedGroup(),
	}
	e := &examination{keys: r.Keys, commands: [][][]byte{r.Args}, resp3: r.RESP3}
	if r.Transaction != nil {
		e.commands, e.transaction = r.Transaction, true
	}
	// A master that has forgotten a script since it was loaded is asked once
	// more; a script that does not compile is not to be had then either.
	var flushed, reloaded atomic.Bool
	frames := e.append(nil)
	q := question[examined]{
		kind: KindRun,
		db:   r.DB,

		keep:    func(b *ballot[examined]) bool { return l.coverRun(b, &r) },
		keys:    keys,
		replies: e.replies(),
		parse: func(replies [][]byte) (examined, error) {
			x, err := e.parse(replies)
			switch {
			case err != nil:
			case len(r.Scripts) > 0 && !reloaded.Load() && (resp.IsNoScript(x.reply) || r.Transaction != nil && bytes.Contains(x.reply, []byte("\r\n-NOSCRIPT"))):
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
		decide: func(answers []quorum.Answer[examined], elapsed time.Duration) Verdict {
			verdict := l.decideRun(&r, answers, elapsed)
			if verdict == NoQuorum && flushed.Load() && slices.ContainsFunc(answers, isPending) {
				return Pending // all are heard before they are asked once more
			}
			return verdict
		},
		late: func(b *ballot[examined], i int, a quorum.Answer[examined], verdict Verdict) {
			r.note(a, verdict)
			l.settleVote(&r, r.won(b.answers, verdict), b.answers, i, a)
		},
	}
	for _, text := range r.Scripts {
		q.load = append(q.load, newLoadable(text))
	}
	if len(r.Watches) > 0 {
		q.guard = r.guard()
	}
	if !r.ReadOnly {
		pass, err := l.turns.take(ctx, r.DB, r.goesNext(), keys...)
		if err != nil {
			return Outcome{Verdict: NoQuorum, Asked: len(l.masters), Needed: quorum.Size(len(l.masters))}
		}
		defer pass()
		q.creates = true
	}
	ask := func() *ballot[examined] {
		b := hold(l, frames, q)
		r.noteAll(b)
		l.settleRun(b, &r)
		return b
	}
	b := ask()
	if flushed.Load() && b.verdict == NoQuorum {
		reloaded.Store(true)
		b = ask()
	}
	return r.outcome(b)
}

// goesNext tells who goes before those that wait for the lock: the holder. A
// script is taken for its until a run of it has acquired (note). Should it acquire
// after all nothing is lost but the order, for it has its turn like every other.
func (r *RunRequest) goesNext() bool { return r.script != nil && !r.script.acquires.Load() }

// decideRun is the verdict on a run, with validity left for what it wrote.
func (l *Locker) decideRun(r *RunRequest, answers []quorum.Answer[examined], elapsed time.Duration) Verdict {
	verdict, ttl := r.rule.decide(answers)
	if verdict == Won && ttl >= 0 && l.validity(ttl, elapsed) <= 0 {
		return Lost
	}
	return verdict
}

func isPending(a quorum.Answer[examined]) bool { return a.State == quorum.Awaited }

func isScriptCommand(name []byte) bool {
	switch strings.ToUpper(string(name)) {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		return true
	}
	return false
}

// note remembers what a script has done somewhere, counted or not, and what an
// earlier try gave up in vain. That is put back, but somebody else may have taken
// the lock in between.
func (r *RunRequest) note(a quorum.Answer[examined], verdict Verdict) {
	if verdict != Won && a.State.Heard() && a.Value.released() {
		r.gaveUp.Store(true)
	}
	if r.script != nil && a.Value.acquired() {
		r.script.acquires.Store(true)
	}
}

func (r *RunRequest) noteAll(b *ballot[examined]) {
	for _, a := range b.answers {
		r.note(a, b.verdict)
	}
}

// outcome words a ballot's end. "There is nothing to release" is no answer to who
// has deleted it in an earlier try of the same run: whether that released anything
// nobody knows.
func (r *RunRequest) outcome(b *ballot[examined]) Outcome {
	o := b.outcome()
	if r.gaveUp.Load() && (o.Verdict == Lost || o.Verdict == Won && !r.rule.winner(b.answers).wrote()) {
		o.Verdict = NoQuorum
	}
	switch o.Verdict {
	case Won:
		winner := r.rule.winner(b.answers)
		o.Reply, o.Lives = winner.reply, time.Duration(winner.longest())*time.Millisecond
	case Lost:
		if o.Reply = refusal(b.answers); o.Reply == nil {
			o.Verdict = NoQuorum
		}
	}
	return o
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
