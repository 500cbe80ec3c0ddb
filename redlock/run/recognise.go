package run

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/script"
	"redlock-proxy/redlock/stream"
)

// A knownScript is what is known of a script from its text and from its runs.
type knownScript struct {
	tooFar  string            // the error reply that refuses it; empty: it is not refused
	release *script.Release   // nil: it is not certainly a release
	text    []stream.Loadable // what the masters must load before its EVALSHA, if it is a release
	once    bool              // it deletes whatever it finds (Request.once)
	// acquires says that a run of it has acquired something. It is learned, and may be
	// forgotten at any time.
	acquires atomic.Bool
}

func readScript(text []byte) *knownScript {
	k := &knownScript{once: script.DeletesAnyway(text)}
	if refusal := script.Reach(text); refusal != "" {
		k.tooFar = "-ERR " + refusal + "\r\n"
	}
	if r, certain := script.Recognise(text); certain && !slices.ContainsFunc(r.Errors(), isMastersOwn) {
		k.release, k.text = r, []stream.Loadable{stream.NewLoadable(bytes.Clone(text))}
	}
	return k
}

// isMastersOwn tells whether an error looks like a master's own: that it cannot serve,
// or does not know a script.
func isMastersOwn(text string) bool {
	reply := []byte("-" + text + "\r\n")
	return resp.CannotServe(reply) || resp.IsNoScript(reply)
}

// knownScripts remembers what is known of scripts, because reading a text takes
// longer than the rest of a run's own work.
type knownScripts struct {
	mu     sync.RWMutex
	byText map[string]*knownScript
}

// maxKnownScripts is the largest number of scripts remembered. Applications have a few.
const maxKnownScripts = 1024

// maxKnownScript is the longest text remembered, in bytes.
const maxKnownScript = 16 << 10

// of is what is known of a script. The task leaves the loop before a text is read.
func (s *knownScripts) of(text []byte, task *loop.Task) *knownScript {
	if len(text) > maxKnownScript {
		task.Leave()
		k := readScript(text)
		k.acquires.Store(true) // its runs are not remembered, so take it for an acquire
		return k
	}
	s.mu.RLock()
	k, known := s.byText[string(text)]
	s.mu.RUnlock()
	if known {
		return k
	}
	task.Leave()
	k = readScript(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byText) >= maxKnownScripts || s.byText == nil {
		s.byText = map[string]*knownScript{}
	}
	s.byText[string(text)] = k
	return k
}

// known is what is known of the one script that the request runs. It is nil if there is
// no such script, or its text is not known.
func (u *Runner) known(r *Request) *knownScript {
	text := r.scriptText()
	if text == nil {
		return nil
	}
	return u.scripts.of(text, r.task)
}

// tooFar reads the request's scripts. It returns the error reply if one of them reaches too far.
func (u *Runner) tooFar(r *Request) string {
	for _, text := range r.Scripts {
		if refusal := u.read(r, text); refusal != "" {
			return refusal
		}
	}
	for _, command := range r.Transaction {
		if refusal := u.evalTooFar(r, command); refusal != "" {
			return refusal
		}
	}
	return u.evalTooFar(r, r.Args)
}

func (u *Runner) evalTooFar(r *Request, command [][]byte) string {
	if len(command) < 3 || !isScriptCommand(command[0]) || strings.HasPrefix(strings.ToUpper(string(command[0])), "EVALSHA") {
		return ""
	}
	return u.read(r, command[1])
}

func (u *Runner) read(r *Request, text []byte) (tooFar string) {
	k := u.scripts.of(text, r.task)
	r.once = r.once || k.once
	return k.tooFar
}

// A recognised script goes to every master unchanged, without looks at its keys. Its
// reply alone shows what it did there. So the client's reply is a master's own here, too.

// releaseAnswer is one master's answer to a recognised script.
type releaseAnswer struct {
	done     bool   // it deleted the key
	noScript bool   // it had forgotten the script
	reply    []byte // its reply; nil if done
}

func (a releaseAnswer) did() bool                  { return a.done }
func (a releaseAnswer) refused() bool              { return !a.done }
func (a releaseAnswer) alike(b releaseAnswer) bool { return resp.Equivalent(a.reply, b.reply, nil) }

// runRecognised runs a script that certainly is a release, without examining it. It
// returns false if the script must be examined. Then nothing was done that matters to a
// second run, but for gaveUp.
func (u *Runner) runRecognised(r *Request) (o ballot.Outcome, ok bool) {
	if r.script == nil || r.script.release == nil {
		return o, false
	}
	call, fits := r.script.release.In(r.Args)
	if !fits || !has(r.Keys, call.Key) {
		return o, false
	}
	first := u.newRelease(r, call)
	r.gaveUp = &first.deleted
	if o, ok = u.releaseByScript(r, first); !ok {
		o, ok = u.releaseByScript(r, u.newRelease(r, call)) // now it is loaded everywhere
		if o.Verdict == ballot.Lost && r.gaveUp.Load() {
			o.Verdict, o.Reply = ballot.NoQuorum, nil // the client may have held the lock
		}
	}
	switch {
	case !r.Effects:
	case o.Verdict == ballot.Won:
		o.Effects = []ballot.Effect{{Key: call.Key, Change: ballot.KeyDeleted}}
	case ok && o.Verdict == ballot.NoQuorum:
		o.Attempted = []ballot.Effect{{Key: call.Key, Change: ballot.KeyDeleted, Value: call.Owner}}
	}
	if r.RESP3 && bytes.Equal(o.Reply, []byte("$-1\r\n")) {
		o.Reply = []byte("_\r\n")
	}
	return o, ok
}

// A release is one try of a recognised script. It keeps nothing of the client's memory,
// because answers may come after the request.
type release struct {
	runner  *Runner
	db      int
	key     [1]string         // a list, as questions take it
	load    []stream.Loadable // what EVALSHA needs
	success []byte            // the reply of a master that deleted the key, and of no other
	before  uint32            // Creations of the key before it was sent
	deleted atomic.Bool       // a master deleted something
	// missed goes to a master that missed the release. It spares a lock that lives longer
	// than the one that the other masters deleted.
	missed stream.Debt
	// life becomes known when the first master has deleted the lock. Until then the debt
	// of a master that breaks off or cannot serve spares every lock whose value may be a
	// constant. So such masters are told once more.
	life stream.Lifetime
	seen stream.Lifetime
}

func (u *Runner) newRelease(r *Request, c script.Call) *release {
	key, owner := ballot.Copies(c.Key, c.Owner)
	try := &release{runner: u, db: r.DB, key: [1]string{key}, success: c.Deleted, before: u.box.Lanes.Creations(r.DB, key)}
	if len(r.Scripts) == 1 {
		try.load = r.script.text
	}
	try.missed = stream.Debt{Script: stream.ReleaseScript, Key: key, Value: owner, Life: &try.life}
	try.seen.Set(time.Now())
	return try
}

// tellMissed sends the release to a master that missed it.
func (r *release) tellMissed(i int) {
	// rule: a recognised release that is told again spares a later lock
	r.runner.box.Masters.At(i).Stream(r.db).Deliver(&r.missed, time.Now(), true)
}

// parse reads a master's PTTL of the key and its reply to the script.
func (r *release) parse(replies [][]byte) (releaseAnswer, error) {
	a, err := r.read(replies[1])
	if a.done {
		r.deleted.Store(true)
	}
	if a.done || err != nil && !a.noScript { // a master that could not delete is told again
		// rule: a recognised release that was missed is told how long the lock may live
		reachAfter(&r.seen, replies[0])
	}
	return a, err
}

// Settle implements ballot.Settler.
func (r *release) Settle(b *ballot.Ballot[releaseAnswer], i int, a quorum.Answer[releaseAnswer], verdict ballot.Verdict) {
	r.life.Become(&r.seen)
	released := verdict == ballot.Won
	switch {
	case a.State.Heard():
		if released && !a.Value.done {
			r.runner.mender.ReleaseAgain(r.db, &r.missed, i, r.before)
		}
	case released, verdict == ballot.NoQuorum && !mustLoad(b) && quorum.Count(b.Answers, releaseAnswer.did).Granted > 0:
		r.tellMissed(i)
	}
}

// mustLoad tells whether a ballot came to nothing because masters had forgotten the script.
// The next try loads it. If it cannot be loaded, the script is examined.
func mustLoad(b *ballot.Ballot[releaseAnswer]) bool {
	return b.Verdict == ballot.NoQuorum && slices.ContainsFunc(b.Answers, func(a quorum.Answer[releaseAnswer]) bool { return a.Value.noScript })
}

// releaseByScript runs the script as a compare-and-delete. It decides like all releases
// (quorum.Tally.Release). Masters that missed it get it by value. It returns false if
// masters had forgotten the script.
func (u *Runner) releaseByScript(r *Request, try *release) (ballot.Outcome, bool) {
	var room [ballot.UsualFrames]byte
	frames := resp.AppendCommand(resp.AppendCommand(room[:0], "PTTL", try.key[0]), r.Args...)
	b := ballot.Poll(u.box, frames, ballot.Question[releaseAnswer]{
		Kind:    ballot.KindRelease,
		DB:      r.DB,
		Keys:    try.key[:],
		Replies: 2,
		Load:    try.load,
		Task:    r.task,
		Debt:    &try.missed, // a master that is away hears of it only if others deleted something
		Parse:   try.parse,
		Counts:  releaseAnswer.did,
		Vote:    func(a releaseAnswer) ballot.Vote { return ballot.VoteOf(a.done) },
		Decide: func(answers []quorum.Answer[releaseAnswer], _ time.Duration) ballot.Verdict {
			return releaseVerdict(answers)
		},
		Settler: try,
	})
	if mustLoad(b) {
		return ballot.Outcome{}, false
	}
	return try.outcome(b.Outcome(), b.Answers), true
}

func releaseVerdict(answers []quorum.Answer[releaseAnswer]) ballot.Verdict {
	_, refusals := quorum.Largest(answers, releaseAnswer.refused, releaseAnswer.alike)
	return quorum.Count(answers, releaseAnswer.did).Release().Told(refusals)
}

func (r *release) outcome(o ballot.Outcome, answers []quorum.Answer[releaseAnswer]) ballot.Outcome {
	switch o.Verdict {
	case ballot.Won:
		o.Reply = r.success
	case ballot.Lost:
		a, _ := quorum.Largest(answers, releaseAnswer.refused, releaseAnswer.alike)
		o.Reply = a.reply
	}
	return o
}

// read turns a master's reply to the script into its answer.
func (r *release) read(reply []byte) (releaseAnswer, error) {
	switch {
	case bytes.Equal(reply, r.success):
		return releaseAnswer{done: true}, nil
	case r.load != nil && resp.IsNoScript(reply):
		return releaseAnswer{noScript: true}, ballot.ErrNoScript
	}
	return releaseAnswer{reply: bytes.Clone(reply)}, ballot.ReadAs(reply, true)
}

// reachAfter prolongs the life of a deleted lock to the PTTL that it had on a master.
func reachAfter(l *stream.Lifetime, pttl []byte) {
	switch left, ok := resp.ParseInteger(pttl); {
	case !ok || left == effect.NoKey:
	case left == effect.NoExpiry:
		l.Reach(time.Time{})
	default:
		l.Reach(time.Now().Add(time.Duration(left) * time.Millisecond))
	}
}

// scriptText is the text of the one script that the request runs. It is nil if there is
// no such script, or its text is not known, or it only reads (EVAL_RO), so it takes and
// releases nothing.
func (r *Request) scriptText() []byte {
	switch {
	case r.Transaction != nil || r.ReadOnly:
		return nil
	case len(r.Scripts) == 1:
		return r.Scripts[0]
	case strings.EqualFold(string(r.Args[0]), "EVAL"):
		return r.Args[1]
	}
	return nil
}
