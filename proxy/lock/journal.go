package lock

import (
	"time"

	"redlock-proxy/proxy/journal"
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
func (p *Plane) remember(name string, db int, a answer, took time.Duration, calls []Command) {
	if len(calls) == 0 {
		return
	}
	call, now := calls[0], time.Now()
	call.From.End()
	if p.Journal == nil || a.rejected != "" {
		return
	}
	key := call.shownKey()
	if !call.Route.Spec.Blocking() && !a.waited && p.IsSlow(took) {
		arguments := 0
		for _, c := range calls {
			arguments += len(c.Args) - 1
		}
		p.Journal.NoteSlow(journal.SlowCommand{At: now, Took: took, Command: name, DB: db, Key: string(key), Arguments: arguments}, call.From)
	}
	e := journal.Event{DB: db, Client: call.From, At: now, TTL: a.ttl, Verdict: journal.VerdictOf(a.kind, &a.outcome), Key: key}
	switch {
	case len(a.outcome.Effects) > 0:
		rules := p.Router().Rules // a companion is no lock
		p.Journal.NoteEffects(e, a.outcome.Effects, func(key []byte) bool { return rules.Find(db, key) != nil })
		return
	case len(calls) > 1 || call.onlyKey() == nil:
		if e.Verdict == journal.Released {
			return // nobody knows which of the keys
		}
	case e.Verdict == journal.Granted:
		e.Value = call.Args[2]
	}
	if e.Verdict != 0 && e.Key != nil && p.Router().Rules.Find(db, e.Key) != nil {
		p.Journal.Note(e)
	}
}
