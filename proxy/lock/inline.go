package lock

import (
	"bytes"
	"context"
	"slices"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
)

// If a rule has a wait, an acquire that is refused stays in the line of its lock
// (lines.go) until it is granted or its time is over. The masters decide each grant as they
// always do.

// shortestInLine is the shortest TTL of a lock that is worth waiting for. The masters may
// refuse a shorter one although nobody holds it. Then it would hold up its line.
const shortestInLine = 10 * time.Millisecond

// acquireInLine takes a lock when its turn comes.
func (p *Plane) acquireInLine(ctx context.Context, r redlock.AcquireRequest, rule *route.Rule, reads wording) answer {
	try := func() answer { return p.acquireOnce(ctx, r, reads) }
	unheard := try
	if !r.Get {
		// One that was never asked gets its refusal from a look at the lock, because an
		// acquire out of its turn could take the lock from the one whose turn it is.
		unheard = func() answer {
			o := p.Locker.Exists(ctx, r.DB, r.Key)
			if o.Verdict == redlock.Won {
				o.Verdict = redlock.Lost
			}
			return answer{kind: redlock.KindAcquire, outcome: o, reads: reads}
		}
	}
	line := waitRequest{DB: r.DB, Keys: [][]byte{r.Key}, Wait: rule.Wait}
	return p.inLine(ctx, line, rule, try, unheard, answer.result)
}

// runScript runs a script of a client. If a run of its text has taken a lock before, it
// acquires. One that is refused then changes nothing, and the lock stays as it is. It waits
// in line. Its first try comes at once, because the client may hold the lock itself.
func (p *Plane) runScript(ctx context.Context, call Command, r redlock.RunRequest, text []byte) answer {
	run := func() answer { return p.examine(ctx, r, call.Leases) }
	rule, locks := p.scriptWaitsFor(call)
	if rule == nil || r.ReadOnly {
		return run()
	}
	result := func(a answer) tryResult { return a.resultOn(locks) }
	if !p.Scripts.Acquires(text) {
		a := run()
		if result(a) == tryGranted {
			p.Scripts.Acquired(text)
		}
		return a
	}
	return p.inLine(ctx, waitRequest{DB: r.DB, Keys: locks, Wait: rule.Wait, AtOnce: true}, rule, run, run, result)
}

// scriptWaitsFor returns those of a script's KEYS whose rule has a wait, and the first such
// rule. An argument that merely looks like a lock is none of them.
func (p *Plane) scriptWaitsFor(call Command) (rule *route.Rule, locks [][]byte) {
	rules := p.Router().Rules
	if !slices.ContainsFunc(rules, func(r route.Rule) bool { return r.Wait > 0 }) {
		return nil, nil
	}
	keys, _ := resp.ParseDecimal(call.Args[2])
	for _, key := range call.Args[3 : 3+keys] {
		if of := rules.Find(call.DB, key); of != nil && of.Wait > 0 {
			locks = append(locks, key)
			if rule == nil {
				rule = of
			}
		}
	}
	return rule, locks
}

// inLine makes a try each time that it is the request's turn. It returns the answer of the
// last try, or of unheard if there was none.
func (p *Plane) inLine(ctx context.Context, r waitRequest, rule *route.Rule, try, unheard func() answer, result func(answer) tryResult) (a answer) {
	loop.FromContext(ctx).Leave()
	began, outcome := time.Now(), events.WaitError // as after a panic
	var ended func(outcome string, after time.Duration)
	defer func() {
		if a.waited = ended != nil; a.waited {
			ended(outcome, time.Since(began))
		}
	}()
	r.Closing, r.Waits = p.Draining, func() { ended = p.Meter.Waits(rule.Label()) }
	tried := p.lines.serve(ctx, r, func() tryResult {
		a = try()
		return result(a)
	})
	switch {
	case ctx.Err() != nil && result(a) != tryGranted: // a grant has a lease
		outcome = events.WaitGone
		a.outcome.Abandoned = true // what the last try did is told all the same
		return a
	case !tried:
		a = unheard()
	}
	switch result(a) {
	case tryGranted:
		outcome = events.WaitGranted
	case tryRefused:
		outcome = events.WaitRefused
	}
	return a
}

// result is what a try came to for those who wait for the same lock.
func (a answer) result() tryResult {
	switch {
	case a.took():
		return tryGranted
	case a.rejected == "" && a.outcome.Verdict == redlock.Lost && a.outcome.Err == "":
		return tryRefused
	}
	return tryUndecided
}

// resultOn is result for a script that acquires these locks: it created one, or changed
// nothing although one exists.
func (a answer) resultOn(locks [][]byte) tryResult {
	among := func(key []byte) bool {
		return slices.ContainsFunc(locks, func(lock []byte) bool { return bytes.Equal(lock, key) })
	}
	switch {
	case a.rejected != "" || a.outcome.Verdict == redlock.NoQuorum:
	case slices.ContainsFunc(a.outcome.Effects, func(e redlock.Effect) bool { return e.Change == redlock.KeyCreated && among(e.Key) }):
		return tryGranted
	case a.outcome.Verdict == redlock.Lost, len(a.outcome.Effects) == 0 && slices.ContainsFunc(a.outcome.Kept, among):
		return tryRefused
	}
	return tryUndecided
}
