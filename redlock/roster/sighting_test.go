package roster

import (
	"testing"
	"time"
	"unsafe"
)

// seenAll reads the markers of places anew, so that they remember at that time.
func (r *Roster) seenAll(at time.Time, masters ...int) {
	for _, i := range masters {
		p := Place{i, 0}
		r.Checked(p, r.views[p].text, false, at, at)
	}
}

// A master has forgotten who the masters are. Whoever tells it must know of every replacement.
func TestRosterWhoMayTellWhoTheMastersAre(t *testing.T) {
	began := time.Now()
	limits := rosterLimits
	lasts := limits.SightingLasts()
	for name, row := range map[string]struct {
		forgot, lookedAt time.Duration // the others were seen all the time
		reads            []int
		lost             []int // these have forgotten, too
		jumps            bool
		want             bool
	}{
		"seen lately, one other remembers":            {forgot: time.Second, lookedAt: lasts, reads: []int{1}, want: true},
		"seen too long ago":                           {forgot: time.Second, lookedAt: lasts + 1, reads: []int{1}},
		"seen lately, and no other remembers":         {forgot: time.Second, lookedAt: lasts, lost: []int{1}, reads: []int{1}},
		"seen lately, as far as a stopped clock says": {forgot: time.Second, lookedAt: lasts, reads: []int{1}, jumps: true},
		"all others remember":                         {forgot: time.Hour, lookedAt: 2 * time.Hour, reads: []int{1, 2}, want: true},
		"others remembered before it forgot":          {forgot: time.Hour, lookedAt: 2 * time.Hour, reads: []int{1}},
		"others have forgotten, too":                  {forgot: time.Hour, lookedAt: 2 * time.Hour, lost: []int{1, 2}, reads: []int{1, 2}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := votingRoster(3, began)
			for _, s := range r.views {
				s.asked = began
			}
			r.seenAll(began.Add(time.Nanosecond), 0, 1, 2)
			seen := began.Add(time.Nanosecond)
			forgot := seen.Add(row.forgot)
			p := Place{0, 0}
			r.Checked(p, "", false, forgot, forgot)
			for _, i := range row.lost {
				r.Checked(Place{i, 0}, "", false, forgot, forgot)
			}
			now := seen.Add(row.lookedAt)
			if row.jumps {
				r.Jumped(1, Jump{time.Hour, time.Hour}, now)
			}
			r.seenAll(now, row.reads...)
			if got := r.knowsMembers(p, r.views[p], now); got != row.want {
				t.Errorf("it may tell: %v", got)
			}
		})
	}
}

// A server that joins waits until enough others have kept that on record for long. One that forgot
// meanwhile may have been told an old record.
func TestRosterAJoinIsKeptOnRecordBeforeTheServerGetsItsMarker(t *testing.T) {
	limits := rosterLimits
	began := time.Now()
	r := votingRoster(3, began)
	for _, s := range r.views {
		s.asked = began
	}
	r.Replace(2, "d", "d-run")
	record := func(i int, since int64, now time.Time) {
		m := r.marker(Place{i, 0}, "s", since, now)
		r.Checked(Place{i, 0}, m.String(), false, now, now)
	}
	record(0, 0, began)
	record(1, 0, began)
	if !r.isUnheard(2, began) {
		t.Error("it is heard at once")
	}
	now := began.Add(limits.SightingLasts())
	record(0, 0, now)
	record(1, 0, now)
	if !r.isUnheard(2, now) {
		t.Error("it is heard too early")
	}
	now = began.Add(limits.Hold())
	record(0, 0, now)
	record(1, 5, now) // flushed, and told anew
	if !r.isUnheard(2, now) {
		t.Error("one of them has forgotten meanwhile")
	}
	now = now.Add(limits.Hold())
	record(0, 0, now)
	record(1, 5, now)
	if r.isUnheard(2, now) {
		t.Error("it is never heard")
	}
}

// Of masters that have just forgotten, one may get an old record from a process that has just seen
// it. So a join counts without them only later.
func TestRosterAJoinWaitsForMastersThatHaveJustForgotten(t *testing.T) {
	limits := rosterLimits
	now := time.Now()
	r := votingRoster(3, now)
	r.Checked(Place{0, 0}, "", false, now, now)
	for after, want := range map[time.Duration]int{limits.Hold() - 1: 2, limits.Hold(): 1} {
		r.views[Place{0, 0}].asked = now.Add(after)
		if got := r.mustHear(2); got != want {
			t.Errorf("read for %v without a record, and %d must hear of it, want %d", after, got, want)
		}
	}
	r.Checked(Place{1, 0}, "", false, now, now)
	if got := r.mustHear(2); got != 0 {
		t.Errorf("all others have forgotten, and %d must hear of it", got)
	}
	r.Checked(Place{1, 0}, "", true, now, now)
	for i := range 2 {
		r.views[Place{i, 0}].asked = now.Add(limits.Hold())
	}
	if got := r.mustHear(2); got != 1 {
		t.Errorf("a key that cannot be read need not be a lost record, and %d must hear of it", got)
	}
}

// stepped returns a time read after the wall clock was stepped. Its monotonic part stays.
func stepped(t time.Time, by time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t)) // the first field: a flag, 33 bits of seconds, 30 of nanoseconds
	*wall += uint64(by/time.Second) << 30
	return t
}

// Only the wall clock may go on while this machine is suspended, and only the monotonic clock goes
// on evenly. A sighting ends by whichever comes first. A join waits by the monotonic clock.
func TestRosterStepsOfTheWallClock(t *testing.T) {
	began := time.Now()
	if by := stepped(began, time.Hour); by.Sub(began) != 0 || by.Round(0).Sub(began.Round(0)) != time.Hour {
		t.Fatal("times have another form now")
	}
	lasts := rosterLimits.SightingLasts()
	for name, row := range map[string]struct {
		after, step, want time.Duration
	}{
		"none":      {after: time.Second, want: time.Second},
		"suspended": {after: time.Second, step: lasts, want: lasts + time.Second},
		"set back":  {after: lasts, step: -time.Hour, want: lasts},
	} {
		if got := ago(began, stepped(began.Add(row.after), row.step)); got != row.want {
			t.Errorf("%s: the sighting is %v old, want %v", name, got, row.want)
		}
	}
	r := votingRoster(3, began)
	for _, s := range r.views {
		s.asked = began
	}
	r.Replace(2, "d", "d-run")
	for _, step := range []time.Duration{0, time.Hour, -time.Hour} {
		now := stepped(began.Add(time.Second), step)
		for i := range 2 {
			r.Checked(Place{i, 0}, r.marker(Place{i, 0}, "s", 0, now).String(), false, now, now)
		}
		if !r.isUnheard(2, now) {
			t.Errorf("the wall clock was stepped by %v, and the join counts early", step)
		}
	}
	now := stepped(began.Add(time.Second+rosterLimits.Hold()), -time.Hour)
	for i := range 2 {
		r.Asked(Place{i, 0}, now, 0)
	}
	if r.isUnheard(2, now) {
		t.Error("the wall clock was set back, and the join does not count")
	}
}

// A quorum of the other masters knows of every join. The rest need not be reached.
func TestRosterAQuorumOfOthersKnowsTheMembers(t *testing.T) {
	now := time.Now()
	for away, want := range map[int]bool{1: true, 2: false} {
		r := votingRoster(5, now)
		p := Place{0, 0}
		r.shows(p, "")
		r.of(0).sighting.at = now.Add(-time.Hour)
		for i := range away {
			r.Disconnected(Place{4 - i, 0}, NotConnected, now)
		}
		if got := r.knowsMembers(p, r.views[p], now.Add(time.Second)); got != want {
			t.Errorf("%d of 5 masters are away: %v", away, got)
		}
	}
}
