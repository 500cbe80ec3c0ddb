package lease

import (
	"time"

	"redlock-proxy/redlock"
)

// Rule is what a lock rule says about leases. The zero Rule says that there are none.
type Rule struct {
	Renew   time.Duration // renewals begin at most so long after the lock was taken; 0: none
	Release bool          // the lock ends with its client's connection
}

// Limits are the settings that a term depends on.
type Limits struct {
	MasterTimeout time.Duration // of one ballot
	ClockDrift    float64       // the share of a TTL by which clocks may run apart
}

// precision is Redis's own, as in the published algorithm.
const precision = 2 * time.Millisecond

// validity is the part of a TTL on which the holder may rely.
func (l Limits) validity(ttl time.Duration) time.Duration {
	return ttl - time.Duration(float64(ttl)*l.ClockDrift) - precision
}

// renewable tells whether a TTL leaves time for a renewal and for asking once more.
func (l Limits) renewable(ttl time.Duration) bool { return ttl >= 6*l.MasterTimeout }

// awaitTTL is how long a lock without TTL may wait for one, as after SETNX and before
// EXPIRE.
const awaitTTL = time.Minute

// A term is the TTL of one lock and the state of its renewals. It is a pure value.
type term struct {
	ttl     time.Duration // the lock's own; 0: none
	taken   time.Time     // the cap counts from here
	since   time.Time     // the TTL counts from here
	again   time.Time     // when an undecided renewal ended; zero: there is none
	heard   time.Time     // when the last renewal ended
	pending bool          // a renewal has no answer yet
	givenUp bool          // its client tried to release it
	doubted bool          // a renewal must tell whether its holder still has it
	brief   bool          // when the TTL was set, it was too short to be renewed
	reach   time.Time     // a copy may last until then, because of undecided commands
	endless bool          // a copy may have no TTL, because of undecided commands
}

func newTerm(ttl time.Duration, since time.Time, limits Limits) term {
	return term{ttl: ttl, taken: since, since: since, brief: !limits.renewable(ttl)}
}

// A step is what to do about a lock at a given time.
type step uint8

const (
	wait   step = iota // nothing, for the given time
	renew              // ask the masters to extend it
	lose               // its validity is over, and it was not renewed
	forget             // it has ended, or nobody depends on it
)

// next decides what to do now. For wait, it also returns for how long.
func (t *term) next(now time.Time, rule Rule, limits Limits) (step, time.Duration) {
	age, valid := elapsed(t.since, now), limits.validity(t.ttl)
	switch {
	case rule == Rule{}:
		return forget, 0
	case t.ttl == 0 && rule.Release:
		return wait, awaitTTL
	case t.ttl == 0:
		return until(forget, awaitTTL-age)
	case rule.Renew == 0 || t.givenUp || t.brief || !t.pending && elapsed(t.taken, now)+t.due(now) > rule.Renew:
		return until(forget, t.ttl-age)
	case age >= valid:
		return lose, 0
	case t.pending:
		return wait, valid - age
	default:
		return until(renew, min(t.due(now), valid-age))
	}
}

// until is s once the time left is over, and before that a wait.
func until(s step, left time.Duration) (step, time.Duration) {
	if left > 0 {
		return wait, left
	}
	return s, 0
}

// due is the time until the next renewal: a third of the TTL after the last that was won,
// or a tenth after one that was undecided. It is 0 if that time has come, or
// if a renewal must tell whether the holder still has the lock.
func (t *term) due(now time.Time) time.Duration {
	switch {
	case t.doubted:
		return 0
	case !t.again.IsZero():
		return max(0, t.ttl/10-elapsed(t.again, now))
	}
	return max(0, t.ttl/3-elapsed(t.since, now))
}

// prolonged notes that the lock got another TTL at a given time. 0: it has none now. So
// somebody works under the lock again. A later renewal proves a TTL up to the old one only.
func (t *term) prolonged(ttl time.Duration, since time.Time, limits Limits) {
	t.since = t.since.Add(min(0, t.ttl-ttl))
	t.ttl, t.again, t.givenUp, t.brief = ttl, time.Time{}, false, !limits.renewable(ttl)
	if since.After(t.since) {
		t.since = since
	}
}

// reentered notes that the holder took or released the lock once more, and what is left of
// the TTL. A shorter one does not replace the lock's own, but must be extended earlier.
func (t *term) reentered(left time.Duration, since time.Time, limits Limits) {
	own := t.ttl
	t.prolonged(left, since, limits)
	if 0 < left && left < own {
		t.ttl, t.since, t.brief = own, since.Add(left-own), !limits.renewable(own)
	}
}

// replaced notes that the lock is a hash with other fields now, and what is left of the TTL.
// The holder's may be among them.
func (t *term) replaced(left time.Duration, since time.Time, limits Limits) {
	givenUp := t.givenUp
	t.reentered(left, since, limits)
	t.givenUp, t.doubted = givenUp, true
}

// A finding is the result of a renewal.
type finding uint8

const (
	renewed   finding = iota
	ended             // somebody released the lock, or took it over
	undecided         // nobody knows, or it was too late
)

// answered notes the outcome of a renewal to a TTL. If the client has set a longer one
// meanwhile, the renewal left that as it was. A minority that still has the lock shows that
// it was lost, or that a release has not reached all masters yet. The next renewal tells.
func (t *term) answered(o redlock.Outcome, to time.Duration, now time.Time) finding {
	t.pending, t.heard = false, now
	switch {
	case o.Verdict == redlock.Won:
		t.again = time.Time{}
		if since := o.Since.Add(min(0, to-t.ttl)); since.After(t.since) {
			t.since = since
		}
		return renewed
	case o.Verdict == redlock.Lost && o.Number == 0:
		return ended
	}
	t.again = now
	return undecided
}

// attempted notes an undecided command that gives the lock another TTL. 0: none.
func (t *term) attempted(ttl time.Duration, now time.Time) {
	if end := now.Add(ttl); end.After(t.reach) {
		t.reach = end
	}
	t.endless = t.endless || ttl == 0
}

// ends is the time by which all copies of the lock have ended, also those that an undecided
// renewal or command has extended. Zero: they never end.
func (t *term) ends(now time.Time) time.Time {
	if t.ttl == 0 || t.endless {
		return time.Time{}
	}
	from := t.since
	switch {
	case t.pending:
		from = now
	case t.heard.After(t.since):
		from = t.heard
	}
	if end := from.Add(t.ttl); end.After(t.reach) {
		return end
	}
	return t.reach
}

// elapsed is the time between two moments, by the monotonic clock or the wall clock,
// whichever says more. The first stops while a machine is suspended, and the second may
// be set.
func elapsed(since, now time.Time) time.Duration {
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0)))
}
