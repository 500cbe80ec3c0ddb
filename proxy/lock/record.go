package lock

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/lease"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// A record is a command, or the commands of a transaction, and how it ended. All that others learn
// of it is told in one place (end), from these values. The commands are an argument of each function, because
// in the record they would need an allocation.
type record struct {
	name   string
	db     int
	leases *lease.Holder // the client's, as in Command
	first  []byte        // the first lock key; in a script without keys it may be a value
	rule   *route.Rule   // of the first lock key; nil: it has none
	key    []byte        // the first lock key if it certainly is one, or nil
	began  time.Time
	answer answer
}

// begin tells that the command begins.
func (r *record) begin(calls []Command) {
	r.began = time.Now()
	for i := 0; i < len(calls) && r.first == nil; i++ {
		r.first, r.key, r.rule = calls[i].firstLock()
	}
	if len(calls) > 0 {
		calls[0].From.Begin(r.name, r.key, r.began)
	}
}

// firstLock is the first lock key of a command, with its rule. key is nil if it may be a value.
func (c *Command) firstLock() (first, key []byte, rule *route.Rule) {
	i := slices.Index(c.Route.Lock, true)
	if i < 0 {
		return nil, nil, nil
	}
	first = c.Args[c.Route.Keys[i]]
	if c.Route.Spec.ArityOK(len(c.Args)) && c.namesKeys() {
		key = first
	}
	return first, key, c.Route.Rule
}

// end tells everybody how the command ended, and returns the answer for the client.
func (p *Plane) end(ctx context.Context, r *record, calls []Command) answer {
	p.refuseMoved(r, calls)
	a := r.answer
	if a.rejected == "" {
		p.tellLeases(r, calls)
		p.tellLines(r, calls)
		p.warnOfTTL(r)
	}
	now := time.Now()
	took := now.Sub(r.began)
	if len(calls) > 0 {
		calls[0].From.End()
		if p.Journal != nil && a.rejected == "" {
			p.tellJournal(r, calls, now, took)
		}
	}
	rule := ""
	if r.first != nil {
		rule = r.rule.Label()
	}
	p.Meter.LockCommand(a.kind.String(), a.verdict(), rule, took.Seconds())
	if a.outcome.TooLong > 0 || a.rejected == errorLongReply {
		p.Meter.LimitReached("lock_reply")
	}
	p.log(ctx, r, calls, took)
	return a
}

// refuseMoved refuses a lock that was taken or extended on a key that has moved meanwhile. The time for which the
// key is held back was chosen without that lock. A client that is refused has no lock.
func (p *Plane) refuseMoved(r *record, calls []Command) {
	router := p.Router()
	if !router.HoldsBack() || !r.answer.took() {
		return
	}
	for _, call := range calls {
		if until := router.HeldBack(call.DB, call.Args, call.Route, time.Now()); !until.IsZero() {
			refusal := wire.ErrMoving(until)
			p.Meter.Refused(refusal.Code())
			r.answer = rejection(r.answer.kind, refusal)
			return
		}
	}
}

// tellLeases tells of locks that were taken, extended or released.
func (p *Plane) tellLeases(r *record, calls []Command) {
	switch a := &r.answer; {
	case a.kind == redlock.KindAcquire:
		if r.leases != nil && a.took() {
			args := calls[0].Args
			r.leases.Took(r.db, args[1], args[2], a.ttl, a.outcome.Since)
		}
	case a.kind == redlock.KindExtend:
		p.Leases.Prolonged(a.outcome, r.db, calls[0].Args[1], a.ttl)
	case a.kind == redlock.KindSwap:
		p.Leases.Ended(a.outcome, r.db, nil, calls[0].Args[1])
	case a.kind == redlock.KindRelease && a.each == nil:
		p.Leases.Ended(a.outcome, r.db, r.leases, calls[0].Args[1])
	case a.kind == redlock.KindRelease:
		keys, _ := calls[0].distinctKeys()
		for i, key := range keys {
			p.Leases.Ended(a.each[i], r.db, r.leases, key)
		}
	case a.kind == redlock.KindRun:
		taker := r.leases
		if r.name != "exec" && !calls[0].Route.Spec.Is(route.Script) {
			taker = nil // only a script or a transaction takes a lock by a run
		}
		p.Leases.Ran(a.outcome, r.db, taker)
		if a.outcome.Verdict == redlock.NoQuorum {
			for _, call := range calls {
				o, _ := call.options(r.began)
				p.Leases.Ended(a.outcome, r.db, r.leases, call.deletes(o)...)
			}
		}
	}
}

// tellLines tells those that wait for a lock that it may be free.
func (p *Plane) tellLines(r *record, calls []Command) {
	if !r.answer.mayFree() {
		return
	}
	for _, call := range calls {
		for _, key := range call.Keys() {
			p.lines.released(call.DB, key)
		}
	}
}

// mayFree tells whether the command may have deleted a lock.
func (a *answer) mayFree() bool {
	switch a.kind {
	case redlock.KindRelease:
		return a.outcome.Verdict != redlock.Lost
	case redlock.KindRun:
		// Without effects and without keys that it kept, nobody asked what the run did.
		known := len(a.outcome.Effects)+len(a.outcome.Kept) > 0 && a.outcome.Verdict != redlock.NoQuorum
		return !known || slices.ContainsFunc(a.outcome.Effects, isDeletion)
	}
	return false
}

func isDeletion(did redlock.Effect) bool { return did.Change == redlock.KeyDeleted }

// warnOfTTL counts a lock that was taken or extended and that lives too long. A master that has forgotten its locks
// does not vote until they have ended, but at most for max_quarantine. That does not cover locks that live longer.
// For each rule, each kind of warning is logged once.
func (p *Plane) warnOfTTL(r *record) {
	if !r.answer.took() || r.answer.keepsTTL {
		return
	}
	switch ttl, most := r.answer.ttl, p.MaxQuarantine(); {
	case ttl > most:
		p.Meter.LockBeyondQuarantine()
		p.warnOnce(r.rule, "lock taken for longer than max_quarantine: a master that forgets it may vote again before it ends; raise max_quarantine or take it for less",
			"ttl", ttl.String(), "max_quarantine", most.String())
	case ttl == 0:
		p.withoutTTL.Add(1)
		p.Meter.LockWithoutTTL()
		p.warnOnce(r.rule, "lock taken without a TTL: if its holder dies it is never released; set default_ttl in its rule")
	}
}

// TakenWithoutTTL is the number of locks without a TTL that this process has granted.
func (p *Plane) TakenWithoutTTL() int64 { return p.withoutTTL.Load() }

// warnOnce logs a warning about a lock if it is the first one like this for the lock's rule.
func (p *Plane) warnOnce(rule *route.Rule, text string, fields ...any) {
	var warning struct {
		text, match string
		db          int
	}
	if rule != nil {
		warning.match, warning.db = rule.Match, rule.DB
	}
	warning.text = text
	if _, before := p.warned.LoadOrStore(warning, true); !before {
		p.Log.Warn(text, append([]any{"match", rule.Name()}, fields...)...)
	}
}

// tellJournal tells package events what the command meant for its keys.
func (p *Plane) tellJournal(r *record, calls []Command, now time.Time, took time.Duration) {
	a, call := &r.answer, &calls[0]
	if a.verdict() != verdictError {
		p.Journal.NoteCommand(a.kind, a.outcome.Verdict, now)
	}
	if !call.Route.Spec.Blocking() && !a.waited && p.IsSlow(took) {
		arguments := 0
		for _, c := range calls {
			arguments += len(c.Args) - 1
		}
		p.Journal.NoteSlow(events.SlowCommand{At: now, Took: took, Command: r.name, DB: r.db, Key: string(r.key), Arguments: arguments}, call.From)
	}
	e := events.KeyEvent{DB: r.db, Client: call.From, At: now, Took: took, TTL: a.ttl, Verdict: events.VerdictOf(a.kind, &a.outcome), Key: r.key}
	switch effects := a.outcome.Effects; {
	case len(effects) > 0:
		for _, did := range effects {
			e.Key, e.TTL, e.Value, e.Verdict = did.Key, did.TTL, did.Value, events.VerdictOfEffect(did, slices.ContainsFunc(effects, isDeletion))
			p.tellOfKey(e, r)
		}
		return
	case len(calls) > 1 || call.onlyKey() == nil:
		if e.Verdict == events.Released {
			if keys, _ := call.distinctKeys(); a.outcome.Number == int64(len(keys)) {
				for _, e.Key = range keys {
					p.tellOfKey(e, r)
				}
			}
			return // else nobody knows which of the keys
		}
	case e.Verdict == events.Granted:
		e.Value = call.Args[2]
	}
	p.tellOfKey(e, r)
}

// tellOfKey tells the journal what a command meant for a key, and the meter how long a lock was held or
// waited for. A companion is no lock.
func (p *Plane) tellOfKey(e events.KeyEvent, r *record) {
	if e.Verdict == 0 || e.Key == nil {
		return
	}
	rule := r.rule
	if !bytes.Equal(e.Key, r.first) {
		rule = p.Router().Rules.Find(e.DB, e.Key)
	}
	if rule == nil {
		return
	}
	switch lasted, known := p.Journal.Note(e); {
	case e.Verdict == events.Granted:
		p.Meter.LockWaited(rule.Label(), lasted)
	case known:
		p.Meter.LockHeld(rule.Label(), lasted)
	}
}

// log warns, at most once a second, if no quorum could tell who holds a lock. It does not warn for a client that has
// gone. At debug level it has a line for each command.
func (p *Plane) log(ctx context.Context, r *record, calls []Command, took time.Duration) {
	a := &r.answer
	if a.outcome.Verdict == redlock.NoQuorum && ctx.Err() == nil {
		if count, due := p.undecided.Due(time.Now()); due {
			p.Log.Warn("lock commands could not be decided (deploy/INCIDENTS.md#quorumlost)", "error", a.outcome.NoQuorumError(),
				"command", r.name, "db", r.db, "took", took, "undecided_since_last_line", count)
		}
	}
	if !p.Log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	key := r.key
	if a.rejected != "" {
		key = nil
	}
	fields := []any{"command", r.name, "db", r.db, "key", string(key), "kind", a.kind.String(), "verdict", a.verdict(), "took", took}
	if len(calls) > 0 && calls[0].Client != nil {
		fields = append(fields, "client", calls[0].Client)
	}
	p.Log.DebugContext(ctx, "lock command", fields...)
}
