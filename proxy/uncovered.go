package proxy

import (
	"context"
	"time"

	"redlock-proxy/proxy/route"
	"redlock-proxy/redlock"
)

// A master that forgets its locks does not vote until those that it may have
// forgotten have ended, but never for longer than max_quarantine. This file
// sees the locks that live longer: they are not covered.

// lockRules are those in force now.
func (p *lockPlane) lockRules() route.Rules { return p.current.Load().Router.Rules }

// tookFor notes that a lock was taken or extended, to end after ttl by itself;
// 0: never. Each kind of long life is warned about once for each rule.
func (p *lockPlane) tookFor(db int, key []byte, ttl time.Duration) {
	if most := p.current.Load().Config.MaxQuarantine; ttl > most {
		p.meter.LockBeyondQuarantine()
		if p.firstTime(db, key, "beyond max_quarantine") {
			p.log.Warn("a lock was taken for longer than max_quarantine: should a master forget it, that master may vote again before the lock has ended",
				"match", p.lockRules().Find(db, key).Name(), "ttl", ttl.String(), "max_quarantine", most.String())
		}
	}
	if ttl == 0 {
		p.withoutTTL.Add(1)
		p.meter.LockWithoutTTL()
		if p.firstTime(db, key, "without TTL") {
			p.log.Warn("a lock was taken without a TTL: if its holder dies it is never free again; the rule can give a default_ttl",
				"match", p.lockRules().Find(db, key).Name())
		}
	}
}

// runTaking runs what may take a lock by a script or the like, of which only
// the run itself can tell for how long.
func (p *lockPlane) runTaking(ctx context.Context, r redlock.RunRequest) redlock.Outcome {
	o := p.locker.Run(ctx, r)
	if o.Lives > 0 && len(r.Keys) > 0 {
		p.took(o, r.DB, r.Keys[0], o.Lives)
	}
	return o
}

// took is tookFor of a request that may not have been won.
func (p *lockPlane) took(o redlock.Outcome, db int, key []byte, ttl time.Duration) {
	if o.Verdict == redlock.Won && o.Err == "" {
		p.tookFor(db, key, ttl)
	}
}

// takenWithoutTTL is how many locks without a TTL this process has given.
func (p *lockPlane) takenWithoutTTL() int64 { return p.withoutTTL.Load() }

// warning is one that is given once.
type warning struct {
	match string
	db    int
	what  string
}

func (p *lockPlane) firstTime(db int, key []byte, what string) bool {
	w := warning{what: what}
	if rule := p.lockRules().Find(db, key); rule != nil {
		w.match, w.db = rule.Match, rule.DB
	}
	_, before := p.warned.LoadOrStore(w, true)
	return !before
}
