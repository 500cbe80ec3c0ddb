package roster

import (
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
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
					r.Connected(p, "another", "", Replication{}, now)
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
		r.Connected(p, r.names(i), "", Replication{}, now)
		r.shows(p, r.marker(p, "s", 0, now).String())
	}
	clear(r.all)
	r.Connected(Place{0, 0}, "another", "", Replication{}, now)
	r.shows(Place{0, 0}, "")
	since := r.views[Place{0, 0}].since
	if r.Tick(since.Add(joiningPatience-time.Millisecond), rosterLimits); r.epoch != 1 {
		t.Error("it is made a newcomer at once")
	}
	if r.Tick(since.Add(joiningPatience), rosterLimits); r.epoch != 2 {
		t.Error("it is never made one")
	}
}

// The server before it votes until enough others have recorded a newcomer, however long that takes.
// The newcomer lacks what was granted until then.
func TestRosterANewcomerLacksWhatWasGrantedUntilOthersHeardOfIt(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	clear(r.all)
	r.Connected(Place{0, 0}, "another", "", Replication{}, now)
	r.Checked(Place{0, 0}, "", false, now, now)
	later := now.Add(time.Hour)
	r.keepsAsking(Place{0, 0}, later)
	r.Tick(later, rosterLimits)
	for i := 1; i < 3; i++ {
		m := r.marker(Place{i, 0}, "s", 0, later)
		m.Longest = 5 * time.Minute
		r.Checked(Place{i, 0}, m.String(), false, later, later)
	}
	r.Tick(later, rosterLimits)
	later = later.Add(rosterLimits.Hold())
	for i := range 3 {
		r.keepsAsking(Place{i, 0}, later)
	}
	for _, m := range r.Tick(later, rosterLimits) {
		if m.Master == 0 && m.Marker.Quarantine >= 5*time.Minute {
			return
		}
	}
	t.Error("it votes before locks of five minutes have ended")
}

// A running ballot may have counted a master that turns out to be replaced.
func TestRosterNothingCountsWhereWhoTheMastersAreHasJustChanged(t *testing.T) {
	now := time.Now()
	limits := rosterLimits
	limits.MasterTimeout = time.Second
	r := votingRoster(3, now)
	m := r.views[Place{1, 0}].marker
	m.Epoch, m.Joined = 2, []string{"2@x", "1", "1"}
	st, m := r.Checked(Place{1, 0}, m.String(), false, now, now)
	for after, want := range map[time.Duration]State{limits.MasterTimeout - 1: Starting, limits.MasterTimeout: Voting} {
		if got := st.At(m, Reading{Received: now.Add(after), Watched: time.Hour}, limits); got.State != want {
			t.Errorf("after %v it is %v, want %v", after, got, want)
		}
	}
}

// A process reaches a, which has a join of d on record, and d, which has no marker. Ten minutes later it
// reaches b. b does not know of the join, and has just granted a long lock with the server before d. So the
// lock is one that d lacks, however long this process has waited.
func TestRosterAServerThatJoinedLacksWhatWasGrantedUntilOthersHeardOfIt(t *testing.T) {
	const long, reached = 10 * time.Minute, 660
	for _, row := range []struct {
		what string
		run  string // of d; it joined in run d1
		zero bool   // another process has written the marker of database 0
		lost bool   // b is reached all the time, and forgets the join every half minute
	}{
		{"in the run that joined", "d1", false, false},
		{"restarted before it had a marker", "d2", false, false},
		{"another database", "d1", true, false},
		{"restarted, and the join was forgotten", "d2", false, true},
	} {
		now := worldBegan
		r := New([]Server{{Name: "a"}, {Name: "b"}, {Name: "d"}}, false, 1)
		markerOf := func(p Place, epoch int64, joined []string, run string) marker.Marker {
			return marker.Marker{DB: p.DB, Set: "s", Member: p.Master + 1, Members: 3, Epoch: epoch, Joined: joined, Run: run, Since: 1}
		}
		joined, before := []string{"1", "1", "2@d/d1"}, []string{"1", "1", "1"}
		for db := range 2 {
			r.Connected(Place{0, db}, "a1", "", Replication{}, now)
			r.Connected(Place{2, db}, row.run, "", Replication{}, now)
		}
		zero, writes := "", 0
		for second := range reached + 200 {
			now = now.Add(time.Second)
			for db := range 2 {
				if second == reached && !row.lost || second == 0 && row.lost {
					r.Connected(Place{1, db}, "b1", "", Replication{}, now)
				}
			}
			if second == reached && row.zero {
				m := markerOf(Place{2, 0}, 2, joined, row.run)
				m.Since, m.Quarantine = now.UnixMilli(), long
				zero = m.String()
			}
			for db := range 2 {
				r.Checked(Place{0, db}, markerOf(Place{0, db}, 2, joined, "a1").String(), false, now, now)
				if second >= reached || row.lost {
					m := markerOf(Place{1, db}, 1, before, "b1")
					m.Since = int64(1 + min(second, reached)/30)
					if second > reached || second < reached && second%30 > 0 {
						m.Epoch, m.Joined = 2, joined
					}
					if second >= reached {
						m.Longest = long
					}
					r.Checked(Place{1, db}, m.String(), false, now, now)
				}
			}
			r.Checked(Place{2, 0}, zero, false, now, now)
			r.Checked(Place{2, 1}, "", false, now, now)
			for _, w := range r.Tick(now, scriptLimits) {
				if w.Master != 2 || w.Kind == EditAll {
					continue
				}
				if writes++; w.Marker.Quarantine < long {
					t.Fatalf("%s: after %d s it waits for %v: %s", row.what, second, w.Marker.Quarantine, w.Reason)
				}
			}
		}
		if writes == 0 {
			t.Errorf("%s: it gets no marker", row.what)
		}
	}
}
