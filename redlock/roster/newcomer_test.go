package roster

import (
	"slices"
	"testing"
	"time"
)

// A newcomer gets no marker before enough of the masters that remember have recorded it. Masters
// that forgot together with it need not.
func TestRosterWhoMustHearOfANewcomer(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		n, newcomers, hear int
	}{
		"one of three":   {3, 1, 2},
		"two of three":   {3, 2, 1},
		"one of five":    {5, 1, 3},
		"two of five":    {5, 2, 3},
		"three of five":  {5, 3, 2},
		"all of five":    {5, 5, 0},
		"three of seven": {7, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			r := votingRoster(row.n, now)
			clear(r.all)
			for i := range row.newcomers {
				for _, db := range []int{0, 3} {
					p := Place{i, db}
					text := r.views[p].text
					r.Step(Connected{Place: p, Run: "another"}, now)
					r.shows(p, text)
				}
			}
			later := time.Now().Add(time.Minute)
			r.markedBy(later)
			for heard := range row.n - row.newcomers + 1 {
				later = later.Add(time.Minute)
				if got := slices.Contains(r.markedBy(later), Place{0, 0}); got != (heard >= row.hear) {
					t.Errorf("%d have heard of it, and it is marked: %v", heard, got)
				}
				if heard < row.n-row.newcomers {
					p := Place{row.newcomers + heard, 0}
					r.shows(p, r.marker(p, "s", 0, now).String())
				}
			}
		})
	}
}

// A process started while a master is away must not mistake it later.
func TestRosterANewcomerWaitsForThoseWhoMayKnowIt(t *testing.T) {
	now := time.Now()
	r := New(serversNamed(3), false, 0)
	r.set = "s"
	for i := range 3 {
		p := Place{i, 0}
		r.Step(Connected{Place: p, Run: r.names(i)}, now)
		r.shows(p, r.marker(p, "s", 0, now).String())
	}
	clear(r.all)
	r.Step(Connected{Place: Place{0, 0}, Run: "another"}, now)
	r.shows(Place{0, 0}, "")
	since := r.views[Place{0, 0}].since
	if r.Tick(since.Add(joiningPatience-time.Millisecond), rosterLimits); r.epoch != 1 {
		t.Error("it is made a newcomer at once")
	}
	if r.Tick(since.Add(joiningPatience), rosterLimits); r.epoch != 2 {
		t.Error("it is never made one")
	}
}

// A running ballot may have counted a master that turns out to be replaced.
func TestRosterNothingCountsWhereWhoTheMastersAreHasJustChanged(t *testing.T) {
	now := time.Now()
	limits := rosterLimits
	limits.MasterTimeout = time.Second
	r := votingRoster(3, now)
	m := r.views[Place{1, 0}].marker
	m.Epoch, m.Joined = 2, []string{"2@x", "1", "1"}
	st, m := r.checked(Place{1, 0}, m.String(), false, now, now)
	for after, want := range map[time.Duration]State{limits.MasterTimeout - 1: Starting, limits.MasterTimeout: Voting} {
		if got := st.At(m, Reading{Received: now.Add(after), Watched: time.Hour}, limits); got.State != want {
			t.Errorf("after %v it is %v, want %v", after, got, want)
		}
	}
}
