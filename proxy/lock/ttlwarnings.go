package lock

import (
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// A master that has forgotten its locks does not vote until they have ended, but at
// most for max_quarantine. That does not cover locks that live longer. This file
// counts them and warns about them.

// took counts a lock that was taken or extended and that lives too long. ttl is the
// lock's time to live, 0 for ever. For each rule, it logs each kind of warning once.
func (p *Plane) took(o redlock.Outcome, db int, key []byte, ttl time.Duration) {
	if o.Verdict != redlock.Won || o.Err != "" {
		return
	}
	switch most := p.MaxQuarantine(); {
	case ttl > most:
		p.Meter.LockBeyondQuarantine()
		if rule, first := p.firstTime(db, key, "beyond max_quarantine"); first {
			p.Log.Warn("lock taken for longer than max_quarantine: a master that forgets it may vote again before it ends",
				"match", rule.Name(), "ttl", ttl.String(), "max_quarantine", most.String())
		}
	case ttl == 0:
		p.withoutTTL.Add(1)
		p.Meter.LockWithoutTTL()
		if rule, first := p.firstTime(db, key, "without TTL"); first {
			p.Log.Warn("lock taken without a TTL: if its holder dies it is never released; set default_ttl in its rule",
				"match", rule.Name())
		}
	}
}

// TakenWithoutTTL is the number of locks without a TTL that this process has granted.
func (p *Plane) TakenWithoutTTL() int64 { return p.withoutTTL.Load() }

// firstTime returns the rule of a key, and whether this is the first warning of this
// kind for the rule.
func (p *Plane) firstTime(db int, key []byte, what string) (rule *route.Rule, first bool) {
	var warning struct {
		what, match string
		db          int
	}
	if rule = p.Router().Rules.Find(db, key); rule != nil {
		warning.match, warning.db = rule.Match, rule.DB
	}
	warning.what = what
	_, before := p.warned.LoadOrStore(warning, true)
	return rule, !before
}
