package roster

import (
	"testing"
	"time"

	"redlock-proxy/redlock/members"
)

// If all clocks jump together, this process stood still. Any other jumps are jumps.
func TestRosterWhichJumpsAreAStandstill(t *testing.T) {
	now := time.Now()
	by := func(d time.Duration) Jump { return Jump{d, d} }
	type jump struct {
		master int
		by     Jump
		after  time.Duration
	}
	minute := by(time.Minute)
	all := []jump{{0, minute, 0}, {1, minute, 0}, {2, minute, 0}}
	for name, row := range map[string]struct {
		masters int
		fourth  string // a fourth place on record, if there is one
		change  func(r *Roster)
		jumps   []jump
		still   bool // this process stood still
	}{
		"all by the same":                         {masters: 3, jumps: all, still: true},
		"all within the tolerance":                {masters: 3, jumps: []jump{{0, minute, 0}, {1, by(time.Minute + ClockTolerance), 0}, {2, minute, 0}}, still: true},
		"all, each by another amount":             {masters: 3, jumps: []jump{{0, minute, 0}, {1, by(2 * time.Minute), 0}, {2, by(3 * time.Minute), 0}}},
		"one by less":                             {masters: 3, jumps: []jump{{0, minute, 0}, {1, by(time.Second), 0}, {2, minute, 0}}},
		"one by more":                             {masters: 3, jumps: []jump{{0, minute, 0}, {1, by(time.Hour), 0}, {2, minute, 0}}},
		"the only one":                            {masters: 1, jumps: []jump{{0, minute, 0}}},
		"one is seen once more":                   {masters: 3, jumps: append([]jump{{0, minute, time.Second}}, all...), still: true},
		"one then jumps by more":                  {masters: 3, jumps: append([]jump{{0, by(time.Hour), time.Second}}, all...)},
		"one then jumps by less":                  {masters: 3, jumps: append([]jump{{0, by(time.Second), time.Second}}, all...)},
		"one jumps again later":                   {masters: 3, jumps: append([]jump{{0, minute, standstillPause + 1}}, all...)},
		"not one that was removed":                {masters: 3, fourth: "2-", jumps: all, still: true},
		"one that was removed, by another amount": {masters: 3, fourth: "2-", jumps: append([]jump{{3, by(time.Hour), 0}}, all...), still: true},
	} {
		for range 20 { // jumps are compared in a random order
			r := votingRoster(row.masters, now)
			if row.fourth != "" {
				r.joined = append(members.New(3), row.fourth)
				r.Step(Listed{3, Server{Name: "d"}}, time.Time{})
				r.Step(Connected{Place: Place{3, 0}, Run: "d"}, now)
			}
			if row.change != nil {
				row.change(r)
			}
			late := time.Duration(0)
			for _, j := range row.jumps {
				if j.after == 0 {
					r.jumped(j.master, j.by, now)
				}
				late = max(late, j.after)
			}
			r.settleJumps(now)
			for _, j := range row.jumps {
				if j.after > 0 {
					r.jumped(j.master, j.by, now.Add(j.after))
				}
			}
			r.settleJumps(now.Add(late))
			if still := r.views[Place{0, 0}].jump == 0; still != row.still {
				t.Errorf("%s: this process stood still: %v", name, still)
				break
			}
		}
	}
}

// A Tick after a standstill does not call for the next one.
func TestRosterAStandstillCallsForOneTick(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for i := range 3 {
		r.jumped(i, Jump{ClockTolerance, ClockTolerance}, now)
	}
	r.Tick(now, rosterLimits)
	if r.Ready(); !r.stood.at.Equal(now) {
		t.Fatal("it is none")
	}
	if r.Tick(now.Add(time.Millisecond), rosterLimits); r.Ready().Changed {
		t.Error("it does")
	}
}

// A reading takes time, so a small step is in no certain direction.
func TestRosterWhichWayAClockJumped(t *testing.T) {
	for _, row := range []struct {
		jump              Jump
		forward, backward bool
	}{
		{Jump{}, false, false},
		{Jump{-1, 1}, false, false},
		{Jump{1, 2}, true, false},
		{Jump{-2, -1}, false, true},
	} {
		if row.jump.Forward() != row.forward || row.jump.Backward() != row.backward {
			t.Errorf("%v: forward %v, backward %v", row.jump, row.jump.Forward(), row.jump.Backward())
		}
	}
}

// Two jumps have in common what lies in both.
func TestRosterWhatTwoJumpsHaveInCommon(t *testing.T) {
	for _, row := range [][3]Jump{
		{{1, 9}, {3, 7}, {3, 7}},
		{{3, 7}, {1, 9}, {3, 7}},
		{{1, 5}, {3, 9}, {3, 5}},
	} {
		if got := row[0].with(row[1]); got != row[2] {
			t.Errorf("%v and %v: %v, want %v", row[0], row[1], got, row[2])
		}
	}
}
