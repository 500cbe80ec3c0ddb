package lock

import (
	"slices"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/redlock"
)

// shownKey is the command's first lock key if it certainly is a key, or nil. One of a
// script's other keys may be a value.
func (c Command) shownKey() []byte {
	if c.Route.Spec == nil || !c.Route.Spec.ArityOK(len(c.Args)) || !c.namesKeys() {
		return nil
	}
	for i, at := range c.Route.Keys {
		if c.Route.Lock[i] {
			return c.Args[at]
		}
	}
	return nil
}

// remember tells the journal how a command ended, or the commands of a transaction.
func (p *Plane) remember(name string, db int, a answer, took time.Duration, now time.Time, calls []Command) {
	if len(calls) == 0 {
		return
	}
	call := calls[0]
	call.From.End()
	if p.Journal == nil || a.rejected != "" {
		return
	}
	if a.verdict() != verdictError {
		p.Journal.NoteCommand(a.kind, a.outcome.Verdict, now)
	}
	key := call.shownKey()
	if !call.Route.Spec.Blocking() && !a.waited && p.IsSlow(took) {
		arguments := 0
		for _, c := range calls {
			arguments += len(c.Args) - 1
		}
		p.Journal.NoteSlow(events.SlowCommand{At: now, Took: took, Command: name, DB: db, Key: string(key), Arguments: arguments}, call.From)
	}
	e := events.KeyEvent{DB: db, Client: call.From, At: now, Took: took, TTL: a.ttl, Verdict: events.VerdictOf(a.kind, &a.outcome), Key: key}
	isDeleted := func(did redlock.Effect) bool { return did.Change == redlock.KeyDeleted }
	switch effects := a.outcome.Effects; {
	case len(effects) > 0:
		for _, did := range effects {
			e.Key, e.TTL, e.Value, e.Verdict = did.Key, did.TTL, did.Value, events.VerdictOfEffect(did, slices.ContainsFunc(effects, isDeleted))
			p.rememberKey(e)
		}
		return
	case len(calls) > 1 || call.onlyKey() == nil:
		if e.Verdict == events.Released {
			if keys, _ := call.distinctKeys(); a.outcome.Number == int64(len(keys)) {
				for _, e.Key = range keys {
					p.rememberKey(e)
				}
			}
			return // else nobody knows which of the keys
		}
	case e.Verdict == events.Granted:
		e.Value = call.Args[2]
	}
	p.rememberKey(e)
}

// rememberKey tells the journal what a command meant for a key, and the meter how long a lock was held or
// waited for. A companion is no lock.
func (p *Plane) rememberKey(e events.KeyEvent) {
	if e.Verdict == 0 || e.Key == nil {
		return
	}
	rule := p.Router().Rules.Find(e.DB, e.Key)
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
