package lock

import (
	"time"

	"redlock-proxy/proxy/holds"
	"redlock-proxy/redlock"
)

// measure tells the meter how long locks were held and waited for, if the commands took or
// released some. A command that nobody could decide tells nothing.
func (p *Plane) measure(a answer, began, now time.Time, calls []Command) {
	if a.rejected != "" || a.outcome.Verdict == redlock.NoQuorum || a.outcome.Err != "" {
		return
	}
	won := a.outcome.Verdict == redlock.Won
	for _, call := range calls {
		if a.kind == redlock.KindRun {
			p.measureRun(a.outcome, began, now, call)
			continue
		}
		for i, at := range call.Route.Keys {
			switch {
			case !call.Route.Lock[i] || at >= len(call.Args):
			case a.kind == redlock.KindAcquire || a.kind == redlock.KindSwap:
				p.measureTry(won, began, now, call, call.Args[at])
			case a.kind == redlock.KindRelease && won:
				p.measureRelease(now, call, call.Args[at])
			}
		}
	}
}

// measureRun measures what a run did to the keys of a command. A run that left a lock as it
// was may be a try in vain.
func (p *Plane) measureRun(o redlock.Outcome, began, now time.Time, call Command) {
	for _, e := range o.Effects {
		switch e.Change {
		case redlock.KeyCreated:
			p.measureTry(true, began, now, call, e.Key)
		case redlock.KeyDeleted:
			p.measureRelease(now, call, e.Key)
		}
	}
	if len(o.Effects) == 0 {
		for _, key := range o.Kept {
			p.measureTry(false, began, now, call, key)
		}
	}
}

func (p *Plane) measureTry(won bool, began, now time.Time, call Command, key []byte) {
	rule, lock := p.Router().Rules.Find(call.DB, key), holds.Lock{DB: call.DB, Key: key}
	switch {
	case rule == nil: // a companion
	case won:
		p.Meter.LockWaited(rule.Label(), holds.Took(p.times, lock, call.LastReads, began, now))
	default:
		holds.Refused(p.times, lock, call.LastReads, began, now)
	}
}

func (p *Plane) measureRelease(now time.Time, call Command, key []byte) {
	if held, ok := p.times.Released(holds.Lock{DB: call.DB, Key: key}, now); ok {
		p.Meter.LockHeld(p.Router().Rules.Find(call.DB, key).Label(), held)
	}
}
