package roster

import "time"

// A jump of a clock and a standstill of this process look alike here. If the kernel reports the
// standstill, it counts as time (slumber.go of redlock/master). If it does not, as on a virtual
// machine that was paused from outside, all masters jump at once and by the same amount. If one
// master is slow or unreachable, nobody can distinguish that from a bad source of time, which
// most masters may share. So the masters count as having jumped. The same holds for a set of
// one master.

// A standstill is when all masters were last found to have jumped together, and by how much.
type standstill struct {
	at time.Time
	by Jump
}

// standstillPause is how long after the first master another one may be seen to make the same
// jump. Each is asked once a beat, or is dialled anew.
const standstillPause = 2 * BeatPause

// settleJumps forgets jumps that all masters made together. Then this process stood still, and
// nothing is written.
func (r *Roster) settleJumps(now time.Time) {
	by, masters := r.jumpsOf(now)
	switch {
	case len(masters) == 0:
		return
	case !by.possible():
		return // each jumped by another amount
	case now.Sub(r.stood.at) <= standstillPause && by.with(r.stood.by).possible():
		// The last of them may be seen a little after the others.
	case r.counted(masters) < max(2, r.masters):
		return // a slow or unreachable master may not have jumped
	default:
		r.stood = standstill{now, by}
		r.warn("the clocks of all lock masters seem to have jumped together, so this process was suspended; their answers of that moment did not count (deploy/INCIDENTS.md#redlockclockjumped)", "by", by.Least.String())
	}
	for p, s := range r.views {
		if masters[p.Master] && s.jumpedAt.Equal(s.lastAt) { // otherwise it also jumped before
			s.jump = 0
		}
	}
	r.changed()
}

// counted counts those of the masters that count.
func (r *Roster) counted(masters map[int]bool) (n int) {
	for i := range r.masters {
		if masters[i] {
			n++
		}
	}
	return n
}

// jumpsOf returns the masters whose clock has just jumped, and the jump that all of them can
// have made.
func (r *Roster) jumpsOf(now time.Time) (by Jump, masters map[int]bool) {
	masters = map[int]bool{}
	for p, s := range r.views {
		if !s.justJumped(now) || !r.joined.Has(p.Master) {
			continue
		}
		if len(masters) == 0 {
			by = s.last
		} else {
			by = by.with(s.last)
		}
		masters[p.Master] = true
	}
	return by, masters
}

// with returns what two jumps can have in common.
func (j Jump) with(other Jump) Jump {
	return Jump{max(j.Least, other.Least), min(j.Most, other.Most)}
}

// possible tells whether there is such a jump.
func (j Jump) possible() bool { return j.Least <= j.Most+ClockTolerance }

// A Jump is the amount by which a clock jumped, positive for forward. A reading takes time, so
// the amount lies between Least and Most. The zero Jump means that it did not jump.
type Jump struct{ Least, Most time.Duration }

// Forward tells whether the clock certainly jumped forward.
func (j Jump) Forward() bool { return j.Least > 0 }

// Backward tells whether the clock certainly jumped backward.
func (j Jump) Backward() bool { return j.Most < 0 }

// ClockTolerance is the 2 ms that validity subtracts besides the drift.
const ClockTolerance = 2 * time.Millisecond
