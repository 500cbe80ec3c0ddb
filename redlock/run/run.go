package run

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/lane"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/mend"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// Request is a command on lock keys that has no request of its own: a script, a command
// on a hash or a sorted set, a whole transaction. Masters execute it unchanged.
type Request struct {
	DB   int
	Keys [][]byte // the lock keys it may touch
	Args [][]byte // the client's command; never empty without a Transaction
	// Transaction holds the commands between MULTI and EXEC. Args is empty then.
	Transaction [][][]byte
	Watches     []*Watch // the transaction runs only if their keys did not change; of the same DB
	// Deletes are the keys that the request deletes, whoever holds them. Those without a Watch are
	// watched, too, so that only masters that hold what a quorum holds execute it. But no reply says
	// that a key without a Watch has changed. Run adds all keys of a script that deletes anyway.
	Deletes [][]byte
	// Scripts are the known texts of scripts that EVALSHA runs here by their SHA1.
	Scripts  [][]byte
	RESP3    bool // the protocol of the reply
	ReadOnly bool // it cannot write
	// Scrap says that elements which too few masters have are deleted, not put back.
	Scrap bool
	// Effects says that the outcome of a won run shows its Effects, and what it Kept.
	Effects bool
	// Deleted, if set, is called when a try that was not won deleted a string or a hash of
	// one holder on some master: so the run was to release the lock with this value. Its deletion is put back.
	// Deleted may be called from any goroutine, also after Run has returned, and must not
	// block.
	Deleted func(key, value []byte)

	script *knownScript // its one script, if it runs one whose text is known
	// once says that one of the request's scripts deletes whatever it finds. It is not executed again
	// if it has deleted something. The first try may have let another client take the lock, on
	// masters that deleted it, and a second try would delete that lock, too.
	once    bool
	gaveUp  *atomic.Bool // a try that was not won deleted something on some master
	earlier *earlier
	rule    effect.Rule
	task    *loop.Task // runs the request; may be nil
}

// Runner runs commands on lock keys, and watches such keys. Any goroutine may use it.
type Runner struct {
	box     *ballot.Box
	mender  *mend.Mender
	retry   func() ballot.Retry
	scripts knownScripts
}

// New makes a Runner. retry returns the present settings for split votes.
func New(box *ballot.Box, mender *mend.Mender, retry func() ballot.Retry) *Runner {
	return &Runner{box: box, mender: mender, retry: retry}
}

// Run executes a command on every master between two looks at its keys. Votes are equal
// if the replies say the same and the keys have the same state afterwards. A script
// that certainly is a release by value needs no look (recognise.go).
//
// If Won, Reply is a winning master's own, byte for byte. If Lost, Reply is one by which
// a quorum of masters refused. Keys on masters that are not among the winning votes are
// put back exactly as they were. Run tries a split vote again like that of an acquire.
// Votes split when copies of a lock expire one after the other, for example.
func (u *Runner) Run(ctx context.Context, r Request) ballot.Outcome {
	r.task = loop.FromContext(ctx)
	if refusal := u.tooFar(&r); refusal != "" {
		return ballot.Outcome{Verdict: ballot.Lost, Reply: []byte(refusal)}
	}
	r.script = u.known(&r)
	if o, ok := u.runRecognised(&r); ok {
		return o
	}
	r.gaveUp = cmp.Or(r.gaveUp, new(atomic.Bool))
	r.task.Leave() // all that follows may wait
	r.earlier = &earlier{deleted: map[int]bool{}}
	run := func() ballot.Outcome {
		if r.gaveUp.Load() && len(r.earlier.deletedKeys()) > 0 {
			return u.runAfterDeletion(ctx, r)
		}
		return u.runOnce(ctx, r)
	}
	if r.once && !r.ReadOnly {
		r.Deletes = r.Keys // it may delete any of them
	}
	var o ballot.Outcome
	switch r.Deletes = r.unwatched(r.Deletes); {
	case len(r.Deletes) > 0:
		o = u.runWatched(ctx, r)
	case len(r.Watches) > 0:
		o = run()
	default:
		o = u.retry().Again(ctx, !r.ReadOnly, run)
	}
	if o.Split() {
		u.mend(r.DB, r.Keys) // for the client's next attempt
	}
	return o
}

// mend starts to mend the copies of keys.
func (u *Runner) mend(db int, keys [][]byte) {
	for _, key := range keys {
		u.mender.Mend(db, string(key))
	}
}

func (u *Runner) runOnce(ctx context.Context, r Request) ballot.Outcome {
	r.Keys = slices.Clone(r.Keys) // undos outlive the call, and the caller's memory
	keys := make([]string, len(r.Keys))
	for i, key := range r.Keys {
		r.Keys[i], keys[i] = bytes.Clone(key), string(key)
	}
	r.rule = r.voting()
	e := &effect.Examination{Keys: r.Keys, Commands: [][][]byte{r.Args}, RESP3: r.RESP3}
	if r.Transaction != nil {
		e.Commands, e.Transaction = r.Transaction, true
	}
	e.Bounded = !slices.ContainsFunc(e.Commands, isScript)
	// A master that forgot a script after it was loaded is asked once more. A script that
	// does not compile is missing then, too.
	var flushed, reloaded atomic.Bool
	frames := e.Append(nil, ballot.Small)
	q := ballot.Question[effect.Result]{
		Kind: ballot.KindRun,
		DB:   r.DB,

		Keeper:  ballot.KeepFunc[effect.Result](func(b *ballot.Ballot[effect.Result]) bool { return u.coverRun(b, &r) }),
		Keys:    keys,
		Replies: e.Replies(),
		Parse: func(replies [][]byte) (effect.Result, error) {
			x, err := e.Parse(replies)
			if err = r.read(&x, err, reloaded.Load()); err == ballot.ErrNoScript {
				flushed.Store(true)
			}
			return x, err
		},
		Vote: func(x effect.Result) ballot.Vote { return ballot.VoteOf(x.Wrote()) },
		Decide: func(answers []quorum.Answer[effect.Result], elapsed time.Duration) ballot.Verdict {
			verdict := u.decideRun(&r, answers, elapsed)
			if verdict == ballot.NoQuorum && flushed.Load() && slices.ContainsFunc(answers, isPending) {
				return ballot.Pending // all must answer before they are asked once more
			}
			return verdict
		},
	}
	for _, text := range r.Scripts {
		q.Load = append(q.Load, stream.NewLoadable(text))
	}
	if len(r.Watches) > 0 {
		q.Guard = r.guard()
	}
	if !r.ReadOnly {
		turn, err := u.box.Lanes.Enter(ctx, r.DB, keys, lane.Queueing{Next: r.goesNext()})
		if err != nil {
			return ballot.Abandoned()
		}
		defer turn.Leave()
		q.Creates = true
	}
	ask := func() *ballot.Ballot[effect.Result] {
		deleted := &deletions{}
		q.Settler = ballot.SettleFunc[effect.Result](func(b *ballot.Ballot[effect.Result], i int, a quorum.Answer[effect.Result], verdict ballot.Verdict) {
			r.note(a, verdict)
			u.settleVote(b, &r, r.won(b.Answers, verdict), deleted, i, a)
		})
		b := ballot.Poll(u.box, frames, q)
		if !r.isTooLarge(b) { // else nothing of the keys was read
			r.earlier.meet(b.Answers)
		}
		return b
	}
	b := ask()
	// Equal copies may differ in size on their masters. So where some are too large and nothing is decided,
	// all are asked once more, too.
	if r.isTooLarge(b) || slices.ContainsFunc(b.Answers, isTooLarge) && r.mayGoAgain(b.Verdict, b.Answers) {
		frames, q.Large = e.Append(nil, u.box.Masters.Limits().MaxReply), true
		b = ask()
	}
	if flushed.Load() && r.mayGoAgain(b.Verdict, b.Answers) {
		reloaded.Store(true)
		b = ask()
	}
	o := r.outcome(b.Outcome(), b.Answers)
	if o.Verdict == ballot.NoQuorum {
		o.Voting = b.CountVoting()
	}
	return o
}

// voting is the rule by which votes on the request are equal.
func (r *Request) voting() effect.Rule {
	observes := r.ReadOnly && !isScriptCommand(r.Args[0])
	return effect.Rule{Observes: observes, Unordered: r.unorderedGroup()}
}

// read makes a master's result its vote, or returns why it is none. err says that the result cannot
// be read, and reloaded that the scripts have been loaded once more.
func (r *Request) read(x *effect.Result, err error, reloaded bool) error {
	if x.Aborted && len(r.Deletes) > 0 {
		x.Reply = nil // EXEC does not say which key has changed
	}
	switch {
	case err != nil:
		return err
	case len(r.Scripts) > 0 && !reloaded && (resp.IsNoScript(x.Reply) || r.Transaction != nil && bytes.Contains(x.Reply, []byte("\r\n-NOSCRIPT"))):
		return ballot.ErrNoScript
	case x.Blind:
		return ballot.ErrBlind
	case x.Failed:
		return ballot.ErrUnable
	}
	return nil
}

// mayGoAgain tells whether the request may go out once more to masters that had forgotten its script.
func (r *Request) mayGoAgain(verdict ballot.Verdict, answers []quorum.Answer[effect.Result]) bool {
	mayHaveDeleted := r.once && (r.gaveUp.Load() || slices.ContainsFunc(answers, isUnknown))
	return verdict == ballot.NoQuorum && !mayHaveDeleted
}

// goesNext tells whether the request goes before those that wait for the lock, as the
// holder's requests do. A script counts as the holder's until a run of it has acquired
// (see note). If it acquires after all, only the order suffers, because it takes its turn
// like every other request.
func (r *Request) goesNext() bool { return r.script != nil && !r.script.acquires.Load() }

// decideRun is the verdict on a run. If the run wrote a TTL, it is won only if some
// validity is left.
func (u *Runner) decideRun(r *Request, answers []quorum.Answer[effect.Result], elapsed time.Duration) ballot.Verdict {
	verdict, ttl := r.rule.Decide(answers)
	if ttl < 0 {
		return verdict
	}
	return u.box.InTime(verdict, ttl, elapsed)
}

// isTooLarge tells whether a ballot was won by masters whose keys are too large for it, so that they did nothing.
func (r *Request) isTooLarge(b *ballot.Ballot[effect.Result]) bool {
	return b.Verdict == ballot.Won && r.rule.Winner(b.Answers).TooLarge
}

func isTooLarge(a quorum.Answer[effect.Result]) bool { return a.State.Heard() && a.Value.TooLarge }

func isPending(a quorum.Answer[effect.Result]) bool { return a.State == quorum.Awaited }

// isUnknown tells whether a master may have executed the run, and its connection broke before it said so.
func isUnknown(a quorum.Answer[effect.Result]) bool { return a.State == quorum.Unknown }

func isScript(command [][]byte) bool { return isScriptCommand(command[0]) }

func isScriptCommand(name []byte) bool {
	switch strings.ToUpper(string(name)) {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		return true
	}
	return false
}

// note remembers whether a script acquired on some master, whether or not that vote
// counts. It also remembers whether a try that was not won deleted something. That is put
// back, but another client may have taken the lock in between.
func (r *Request) note(a quorum.Answer[effect.Result], verdict ballot.Verdict) {
	if verdict != ballot.Won && a.Value.Deleted() { // also if the master could not serve to the end
		r.gaveUp.Store(true)
		r.earlier.lost(a.Value)
		r.tellDeleted(a.Value)
	}
	if r.script != nil && a.Value.Acquired() {
		r.script.acquires.Store(true)
	}
}

func (r *Request) tellDeleted(x effect.Result) {
	if r.Deleted == nil {
		return
	}
	for k := range x.After {
		if !x.DeletedKey(k) {
			continue
		}
		if value := x.Before[k].Text(); value != nil {
			r.Deleted(r.Keys[k], value)
		} else if holder := x.Before[k].Holder(); holder != nil {
			r.Deleted(r.Keys[k], holder)
		}
	}
}

// outcome returns what the client gets. "There is nothing to release" is no answer if an
// earlier try of the same run deleted something, because nobody knows whether that
// released the lock.
func (r *Request) outcome(o ballot.Outcome, answers []quorum.Answer[effect.Result]) ballot.Outcome {
	if r.gaveUp.Load() && (o.Verdict == ballot.Lost || !r.rule.Winner(answers).Wrote()) {
		o.Verdict = ballot.NoQuorum
	}
	switch o.Verdict {
	case ballot.Won:
		winner := r.rule.Winner(answers)
		o.Reply, o.Lives = winner.Reply, time.Duration(winner.LongestTTL())*time.Millisecond
		if winner.TooLarge {
			o.TooLong = o.Answered
		}
		if r.Effects {
			o.Effects, o.Kept = r.effects(answers, winner)
			o.Refused = r.script != nil && r.script.acquires.Load() && !winner.Wrote()
		}
	case ballot.Lost:
		o.Reply = effect.Refusal(answers)
	}
	if o.Reply == nil {
		o.Verdict = ballot.NoQuorum // refusals differ, or its client may not watch what has changed
	}
	return o
}

// effects are what the winning masters did to the request's keys, and those that they found
// and left alone.
func (r *Request) effects(answers []quorum.Answer[effect.Result], winner effect.Result) (all []ballot.Effect, kept [][]byte) {
	for k, did := range winner.Changes() {
		after := winner.After[k]
		if did.Wrote() && after.IsOver() {
			did = effect.Compare(winner.Before[k], effect.Missing)
		}
		e := ballot.Effect{Key: r.Keys[k], TTL: r.rule.Left(answers, winner, k)}
		switch did {
		case effect.Created:
			e.Change, e.Value, e.Holder = ballot.KeyCreated, after.Text(), after.Holder()
		case effect.Moved:
			e.Change = ballot.KeyProlonged
		case effect.Changed:
			e.Change = ballot.KeyReplaced
			if by := after.Holder(); by != nil && bytes.Equal(by, winner.Before[k].Holder()) {
				e.Change = ballot.KeyReentered
			}
		case effect.Deleted:
			e.Change = ballot.KeyDeleted
		case effect.Kept:
			kept = append(kept, r.Keys[k])
			continue
		default:
			continue
		}
		all = append(all, e)
	}
	return all, kept
}

// unorderedGroup is the number of elements that belong together in a reply whose order
// is up to each master: 2 for fields and values, 1 for members, 0 if order matters.
func (r *Request) unorderedGroup() int {
	if r.Transaction != nil {
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
