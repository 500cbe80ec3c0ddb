package redlock

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
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

	script *knownScript // its one script, if it runs one whose text is known
	gaveUp *atomic.Bool // a try that was not won deleted something somewhere
	rule   effect.Rule
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
	r.script, r.gaveUp = l.known(&r), new(atomic.Bool)
	if o, ok := l.runRecognised(r); ok {
		return o
	}
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
	r.rule = effect.Rule{
		Observes:  r.ReadOnly && r.Transaction == nil && len(r.Args) > 0 && !isScriptCommand(r.Args[0]),
		Unordered: r.unorderedGroup(),
	}
	e := &effect.Examination{Keys: r.Keys, Commands: [][][]byte{r.Args}, RESP3: r.RESP3}
	if r.Transaction != nil {
		e.Commands, e.Transaction = r.Transaction, true
	}
	// A master that has forgotten a script since it was loaded is asked once
	// more; a script that does not compile is not to be had then either.
	var flushed, reloaded atomic.Bool
	frames := e.Append(nil)
	q := question[effect.Result]{
		kind: KindRun,
		db:   r.DB,

		keep:    func(b *ballot[effect.Result]) bool { return l.coverRun(b, &r) },
		keys:    keys,
		replies: e.Replies(),
		parse: func(replies [][]byte) (effect.Result, error) {
			x, err := e.Parse(replies)
			switch {
			case err != nil:
			case len(r.Scripts) > 0 && !reloaded.Load() && (resp.IsNoScript(x.Reply) || r.Transaction != nil && bytes.Contains(x.Reply, []byte("\r\n-NOSCRIPT"))):
				flushed.Store(true)
				err = errNoScript
			case x.Blind:
				err = errBlind
			case x.Failed:
				err = errUnable
			}
			return x, err
		},
		vote: func(x effect.Result) Vote { return voteOf(x.Wrote()) },
		decide: func(answers []quorum.Answer[effect.Result], elapsed time.Duration) Verdict {
			verdict := l.decideRun(&r, answers, elapsed)
			if verdict == NoQuorum && flushed.Load() && slices.ContainsFunc(answers, isPending) {
				return Pending // all are heard before they are asked once more
			}
			return verdict
		},
		late: func(b *ballot[effect.Result], i int, a quorum.Answer[effect.Result], verdict Verdict) {
			r.note(a, verdict)
			l.settleVote(&r, r.won(b.answers, verdict), b.answers, i, a)
		},
	}
	for _, text := range r.Scripts {
		q.load = append(q.load, stream.NewLoadable(text))
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
	ask := func() *ballot[effect.Result] {
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
func (l *Locker) decideRun(r *RunRequest, answers []quorum.Answer[effect.Result], elapsed time.Duration) Verdict {
	verdict, ttl := r.rule.Decide(answers)
	if ttl < 0 {
		return verdict
	}
	return l.inTime(verdict, ttl, elapsed)
}

func isPending(a quorum.Answer[effect.Result]) bool { return a.State == quorum.Awaited }

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
func (r *RunRequest) note(a quorum.Answer[effect.Result], verdict Verdict) {
	if verdict != Won && a.State.Heard() && a.Value.Deleted() {
		r.gaveUp.Store(true)
	}
	if r.script != nil && a.Value.Acquired() {
		r.script.acquires.Store(true)
	}
}

func (r *RunRequest) noteAll(b *ballot[effect.Result]) {
	for _, a := range b.answers {
		r.note(a, b.verdict)
	}
}

// outcome words a ballot's end. "There is nothing to release" is no answer to who
// has deleted it in an earlier try of the same run: whether that released anything
// nobody knows.
func (r *RunRequest) outcome(b *ballot[effect.Result]) Outcome {
	o := b.outcome()
	if r.gaveUp.Load() && (o.Verdict == Lost || o.Verdict == Won && !r.rule.Winner(b.answers).Wrote()) {
		o.Verdict = NoQuorum
	}
	switch o.Verdict {
	case Won:
		winner := r.rule.Winner(b.answers)
		o.Reply, o.Lives = winner.Reply, time.Duration(winner.LongestTTL())*time.Millisecond
	case Lost:
		if o.Reply = effect.Refusal(b.answers); o.Reply == nil {
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
