package roster

import (
	"time"

	"redlock-proxy/redlock/quorum"
)

// A clock that jumps and a process that stands still look alike from here. Where
// the kernel knows of the standstill it is counted as time (slumber.go). Where it
// does not, as on a virtual machine that was paused from outside, all masters have
// jumped at once and by the same amount. Where one of them is slow or away, nobody
// can tell that from a bad source of time, which most masters may share: so they
// have jumped. Of one master alone nobody can tell either.

// A standstill of this process is when the masters were last found to have jumped
// together, and by how much.
type standstill struct {
	at time.Time
	by Jump
}

// standstillPause is how long after the first of them another master may be seen
// to have made the same jump: it is asked each beat, or dialled anew.
const standstillPause = 2 * BeatPause

// settleJumps forgets jumps that all masters made together: then it was this
// process that stood still, and nothing is written.
func (r *Roster) settleJumps(now time.Time) {
	by, masters := r.jumpsOf(now)
	switch {
	case len(masters) == 0:
		return
	case !by.possible():
		return // each by another amount
	case now.Sub(r.stood.at) <= standstillPause && by.with(r.stood.by).possible():
		// The last of them may be seen a little after the others.
	case len(masters) < max(2, quorum.Size(r.masters)) || !r.othersHaveJumped(masters):
		return // one that is slow or away may be the one that has not jumped
	default:
		r.stood = standstill{now, by}
		r.warn("all lock masters seem to have jumped in time together, so it was this process that was suspended; their answers of that moment did not count", "by", by.Least.String())
	}
	for p, s := range r.sights {
		if masters[p.Master] {
			s.jump = 0
		}
	}
	r.changed()
}

// jumpsOf are the masters whose clock has just jumped, and by how
// much all of them can have.
func (r *Roster) jumpsOf(now time.Time) (by Jump, masters map[int]bool) {
	masters = map[int]bool{}
	for p, s := range r.sights {
		if !s.jumpedWithin(standstillPause, now) {
			continue
		}
		if its := (Jump{s.jump, s.jumpMost}); len(masters) == 0 {
			by = its
		} else {
			by = by.with(its)
		}
		masters[p.Master] = true
	}
	return by, masters
}

// othersHaveJumped tells whether all other masters have an earlier
// jump that is not yet written down, so that they tell nothing of this one.
func (r *Roster) othersHaveJumped(jumped map[int]bool) bool {
	for i := range r.masters {
		if s := r.sights[Place{i, 0}]; !jumped[i] && (s == nil || s.jump == 0) {
			return false
		}
	}
	return true
}

// with is what two jumps can have in common.
func (j Jump) with(other Jump) Jump {
	return Jump{max(j.Least, other.Least), min(j.Most, other.Most)}
}

// possible: there is such a jump.
func (j Jump) possible() bool { return j.Least <= j.Most+ClockTolerance }

// clocksRead: every other master that is connected was asked for the time since.
func (r *Roster) clocksRead(p Place, since time.Time) bool {
	for other, s := range r.sights {
		if other.DB == p.DB && other.Master != p.Master && s.connected && s.asked.Before(since) {
			return false
		}
	}
	return true
}

// A Jump is by how much a clock jumped, forward if that is positive: at least and
// at most, for a reading takes its time. Zero: it did not.
type Jump struct{ Least, Most time.Duration }

func (j Jump) Forward() bool { return j.Least > 0 }

func (j Jump) Backward() bool { return j.Most < 0 }

// clockTolerance is the 2 ms that validity takes off besides the drift.
const ClockTolerance = 2 * time.Millisecond
