package redlock

import (
	"log/slog"
	"testing"
	"time"
)

// What a roster makes of what it sees, where no timeline can time it so.

// certifiedRoster is one of n masters that all vote in databases 0 and 3.
func certifiedRoster(n int, now time.Time) *roster {
	r := newRoster(n, func(i int) string { return string(rune('a' + i)) }, false, func(MasterStatus) {}, slog.New(slog.DiscardHandler))
	r.lastCheck = func(place) time.Time { return now.Add(time.Hour) }
	r.set = "s"
	for i := range n {
		for _, db := range []int{0, 3} {
			p := place{i, db}
			r.connected(p, greeting{identity: identity{runID: r.names(i)}}, now)
			r.see(p, r.marker(p, "s", 0).String(), false)
			r.note(p, standing{state: Certified})
		}
	}
	return r
}

// lookAgain is how a place is judged when its marker is read once more.
func (r *roster) lookAgain(p place) MasterState {
	st, _ := r.see(p, r.sights[p].text, false)
	return st.state
}

func TestRosterAJumpIsNotMissedByADatabaseThatIsDialledAnew(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(5, now)
	p := place{0, 3}
	marker := r.sights[p].text
	r.disconnected(p)
	r.jumped(0, time.Minute, now)
	r.connected(p, greeting{identity: identity{runID: r.names(0)}}, now)
	if st, _ := r.see(p, marker, false); st.state != Uncertified {
		t.Errorf("the clock of its master has jumped, and it is %v", st.state)
	}
}

func TestRosterAJumpStaysOneWhenThisProcessIsSuspendedLater(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(5, now)
	r.jumped(0, time.Minute, now)
	later := now.Add(time.Minute)
	for i := range 5 {
		r.jumped(i, time.Second, later)
	}
	r.plan(later, Config{RestartDelay: 30 * time.Second, MaxQuarantine: time.Hour})
	for i, want := range []MasterState{Uncertified, Certified, Certified, Certified, Certified} {
		if got := r.lookAgain(place{i, 0}); got != want {
			t.Errorf("master %d is %v, want %v", i+1, got, want)
		}
	}
}

func TestRosterTheLongestTTLIsThatOfAllDatabases(t *testing.T) {
	r := certifiedRoster(3, time.Now())
	for i := range 3 {
		r.note(place{i, 3}, standing{state: Certified, longest: time.Hour})
	}
	for _, m := range r.status().Masters {
		if m.Longest != time.Hour {
			t.Errorf("the longest TTL granted is %v, want 1h", m.Longest)
		}
	}
}

// A process that has just started finds that masters have forgotten, and one
// that may know of a longer TTL is away: then it is as if the longest had been
// granted that a quarantine covers.
func TestRosterWhatNobodyCanTellIsTheLongestTTLThatIsCovered(t *testing.T) {
	now := time.Now()
	limits := Config{RestartDelay: 30 * time.Second, MaxQuarantine: 10 * time.Minute}
	for name, row := range map[string]struct {
		forgot, away []int
		lived        bool          // the process was there before
		want         time.Duration // 0: nothing is written yet
	}{
		"one forgot":                     {[]int{0}, nil, false, 30 * time.Second},
		"one forgot, one is away":        {[]int{0}, []int{4}, false, 30 * time.Second},
		"one forgot, two are":            {[]int{0}, []int{3, 4}, true, 0},
		"two forgot":                     {[]int{0, 1}, nil, false, 30 * time.Second},
		"two forgot, one is away":        {[]int{0, 1}, []int{4}, false, 10 * time.Minute},
		"two forgot, one is away, lived": {[]int{0, 1}, []int{4}, true, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := certifiedRoster(5, now)
			r.recalls[0] = row.lived
			r.marked[0] = true
			for _, i := range row.forgot {
				r.see(place{i, 0}, "", false)
			}
			for _, i := range row.away {
				r.disconnected(place{i, 0})
			}
			for _, i := range []int{1, 2, 3, 4} {
				if s := r.sights[place{i, 0}]; s.present() {
					r.see(place{i, 0}, s.text, false)
				}
			}
			got := map[int]time.Duration{}
			for _, m := range r.plan(now.Add(time.Minute), limits) {
				if m.db == 0 && m.write.since == sinceNow {
					got[m.master] = m.write.quarantine
				}
			}
			for _, i := range row.forgot {
				if got[i] != row.want {
					t.Errorf("master %d is given a quarantine of %v, want %v", i+1, got[i], row.want)
				}
			}
		})
	}
}
