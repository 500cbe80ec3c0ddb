package roster

import (
	"testing"
	"time"
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
	lasts := sightingLasts(limits)
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
			r := certifiedRoster(3, began)
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
			if got := r.knowsMembers(p, r.views[p], now, limits); got != row.want {
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
	r := certifiedRoster(3, began)
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
	if !r.isUnheard(2, began, limits) {
		t.Error("it is heard at once")
	}
	now := began.Add(sightingLasts(limits))
	record(0, 0, now)
	record(1, 0, now)
	if !r.isUnheard(2, now, limits) {
		t.Error("it is heard too early")
	}
	now = began.Add(hold(limits))
	record(0, 0, now)
	record(1, 5, now) // flushed, and told anew
	if !r.isUnheard(2, now, limits) {
		t.Error("one of them has forgotten meanwhile")
	}
	now = now.Add(hold(limits))
	record(0, 0, now)
	record(1, 5, now)
	if r.isUnheard(2, now, limits) {
		t.Error("it is never heard")
	}
}

// Of masters that have just forgotten, one may get an old record from a process that has just seen
// it. So a join counts without them only later.
func TestRosterAJoinWaitsForMastersThatHaveJustForgotten(t *testing.T) {
	limits := rosterLimits
	now := time.Now()
	r := certifiedRoster(3, now)
	r.Checked(Place{0, 0}, "", false, now, now)
	for after, want := range map[time.Duration]int{hold(limits) - 1: 2, hold(limits): 1} {
		if got := r.mustHear(2, now.Add(after), limits); got != want {
			t.Errorf("after %v %d must hear of it, want %d", after, got, want)
		}
	}
	r.Checked(Place{1, 0}, "", false, now, now)
	if got := r.mustHear(2, now, limits); got != 0 {
		t.Errorf("all others have forgotten, and %d must hear of it", got)
	}
}
