package roster

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// listed returns a roster of n listed servers, and what it finds on them: a word for each of the first
// ones. "-" is no marker, "x" the marker of this place in a set x, "x/2" that of its second place,
// "x:1,1" has another record, and "?" is no readable marker. "." was not reached, ".." did not answer,
// and "x!" was reached before.
func listed(n int, found string, now time.Time) *Roster {
	r := New(serversNamed(n), true, 0)
	for i, word := range strings.Fields(found) {
		p := Place{i, 0}
		if word == "." {
			continue
		}
		r.Step(Connected{Place: p, Run: r.names(i)}, now)
		if word == ".." {
			continue
		}
		word, lost := strings.CutSuffix(word, "!")
		r.checked(p, r.textFound(p, word), false, now, now)
		if lost {
			r.Step(Disconnected{p, NotConnected}, now)
		}
	}
	return r
}

// textFound returns the text of the marker that a word of listed means.
func (r *Roster) textFound(p Place, word string) string {
	switch word {
	case "-":
		return ""
	case "?":
		return "hello"
	}
	word, record, hasRecord := strings.Cut(word, ":")
	set, number, hasNumber := strings.Cut(word, "/")
	m := r.marker(p, set, 0, worldBegan)
	if hasRecord {
		m.Joined = strings.Split(record, ",")
		m.Members = len(m.Joined)
	}
	if hasNumber {
		m.Member = int(number[0] - '0')
	}
	return m.String()
}

// A process that knows no set takes over the one to which most masters belong. If it takes over none,
// it says why.
func TestRosterWhichSetIsTakenOver(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		found, set, why string // why holds a part of the reason
	}{
		{"x x y", "x", ""},
		{"x y y", "y", ""},
		{"x - -", "x", ""},
		{"x y -", "", "a belongs to set x; b belongs to set y"},
		{"x . .", "", "a belongs to set x; b has not been reached; c has not been reached"},
		{"x .. ..", "", "b has not been reached"},
		{"- - x!", "", "c has not been reached"},
		{"- - ?", "", "c has a key redlock-proxy:master that this version cannot read"},
		{"x/2 - -", "", "a is number 2 of 3 of set x, and configured as number 1 of 3"},
		{"x x/1 y", "", "b is number 1 of 3 of set x, and configured as number 2 of 3"},
		{"x x:1,1,1,1 y", "", "b is number 2 of 4 of set x, and configured as number 2 of 3"},
		{"x:1,1,1,1 - -", "", "a is number 1 of 4 of set x, and configured as number 1 of 3"},
		{"x:1,1,1,2+d x:1,1,1,2+d -", "x", ""},
	} {
		for range 20 { // sets are compared in a random order
			r := listed(3, row.found, now)
			if r.Tick(now, rosterLimits); r.set != row.set || !strings.Contains(r.reason, row.why) {
				t.Errorf("%s: set %q is taken over, want %q: %s", row.found, r.set, row.set, r.reason)
				break
			}
		}
	}
	r := listed(3, "- - -", now)
	if r.Tick(now.Add(time.Minute), rosterLimits); !strings.HasSuffix(r.reason, "a has not answered lately; b has not answered lately; c has not answered lately") {
		t.Errorf("nothing was read for a minute: %s", r.reason)
	}
}

// What markers of other sets say is not learned.
func TestRosterNothingIsLearnedFromAnotherSet(t *testing.T) {
	now := time.Now()
	r := listed(5, "x x x y:1,1,1,1,2@z y:1,1,1,1,2@z", now)
	if r.Tick(now, rosterLimits); r.set != "x" || r.epoch != 1 || r.joined.Who(4) != "1" {
		t.Errorf("set %s, epoch %d, joined %s", r.set, r.epoch, r.joined)
	}
}

// A set that replaces another one is counted by its own number of masters. No ballot that is under way
// counts on with it.
func TestRosterASetOfMoreMastersGivesWayToNoMinority(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for i := range 3 {
		if i == 2 {
			if r.Tick(now, rosterLimits); r.set != "s" {
				t.Fatal("two of five masters of another set replace the set of three")
			}
		}
		r.shows(Place{i, 0}, r.another(i, func(m *marker.Marker) { m.Members, m.Joined = 5, []string{"1", "1", "1", "2+d", "3+e"} }))
	}
	if r.Tick(now, rosterLimits); r.set != "another" || !r.Ready().Learned.Equal(now) {
		t.Errorf("set %s, learned at %v", r.set, r.Ready().Learned)
	}
	r = votingRoster(3, now)
	for i := range 2 {
		r.shows(Place{i, 0}, r.another(i, func(*marker.Marker) {}))
	}
	third := r.views[Place{2, 0}]
	third.blank = true // as if it had been left over when the set before began
	if r.Tick(now, rosterLimits); r.set != "another" || !r.Ready().Learned.Equal(now) {
		t.Errorf("set %s of the same members, learned at %v", r.set, r.Ready().Learned)
	}
	if third.blank {
		t.Error("what is left of the set before may begin with the next one")
	}
}

// A new set begins if all servers of the list are in order, and none belongs to a set.
func TestRosterWhenANewSetBegins(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		found  string
		change func(r *Roster)
		why    string // "": it begins
	}{
		"none has a marker": {found: "- - -"},
		"one is a replica": {"- - -", func(r *Roster) { r.views[Place{1, 0}].Replica = true },
			"b: it is a replica of another server"},
		"one is no master": {"- - -", func(r *Roster) { r.views[Place{1, 0}].problem = "it is a Sentinel" },
			"b: it is a Sentinel"},
		"one belongs to a set of more": {"- - x:1,1,1,1,1,1,1", func(*Roster) {},
			"c is number 3 of 7 of set x, and configured as number 3 of 3"},
		"another database has no marker": {"- - -", func(r *Roster) {
			r.Step(Connected{Place: Place{1, 3}, Run: "b"}, now)
			r.checked(Place{1, 3}, "", false, now, now)
		}, ""},
	} {
		r := listed(3, row.found, now)
		if row.change != nil {
			row.change(r)
		}
		writes := r.Tick(now, rosterLimits)
		if begins := len(writes) == 1; begins != (row.why == "") || !strings.Contains(r.reason, row.why) {
			t.Errorf("%s: it begins: %v, %s", name, begins, r.reason)
		}
		r.Ready()
		if r.Tick(now, rosterLimits); r.Ready().Changed {
			t.Errorf("%s: a Tick calls for the next one", name)
		}
		for p, s := range r.views {
			if s.blank != (len(writes) == 1 && p.Master < 3 && p.DB == 0) {
				t.Errorf("%s: %v may begin with the set: %v", name, p, s.blank)
			}
		}
	}
}

// The operator's word that no lock can be held yet may come late. It ends the quarantine in which a set
// began, as long as no master has left that quarantine or has forgotten since.
func TestRosterTheWordThatASetIsNewMayComeLate(t *testing.T) {
	began := time.Now().Truncate(time.Second)
	set := marker.NewSetID(began, rosterLimits.RestartDelay, 7)
	end := marker.FirstQuarantine(set)
	first := Standing{State: Quarantined, Until: end}
	for name, row := range map[string]struct {
		change func(r *Roster, s *view)
		after  time.Duration
		writes int
	}{
		"all are in the first quarantine": {func(*Roster, *view) {}, time.Second, 3},
		"it is over":                      {func(*Roster, *view) {}, rosterLimits.RestartDelay, 0},
		"one was told before":             {func(_ *Roster, s *view) { s.marker.Since, s.told = 0, Standing{State: Voting} }, time.Second, 2},
		"one forgot later":                {func(_ *Roster, s *view) { s.told.Until = end.Add(3 * time.Second) }, time.Second, 0},
		"one was let out":                 {func(_ *Roster, s *view) { s.told.State = Voting }, time.Second, 0},
		"one is away":                     {func(_ *Roster, s *view) { s.connected = false }, time.Second, 0},
		"one is of another set":           {func(_ *Roster, s *view) { s.marker.Set, s.marker.Since = "y", 0 }, time.Second, 0},
		"one has restarted":               {func(_ *Roster, s *view) { s.run, s.marker.Since = "another", 0 }, time.Second, 0},
	} {
		r := listed(3, "x x x", began)
		r.set = set
		for i := range 3 {
			s := r.views[Place{i, 0}]
			s.marker.Set, s.marker.Since, s.marker.Quarantine, s.told = set, 1, rosterLimits.RestartDelay, first
		}
		row.change(r, r.views[Place{2, 0}])
		now := began.Add(row.after)
		got := 0
		for _, w := range r.Tick(now, rosterLimits) {
			if w.Kind == WriteAll && w.Marker.Since == 0 {
				got++
			}
		}
		if got != row.writes {
			t.Errorf("%s: %d masters are told that the set is new, want %d", name, got, row.writes)
		}
	}
}

// People are told when a quorum will vote.
func TestRosterWhenANewSetCanGrantLocks(t *testing.T) {
	began := time.Now().Truncate(time.Second)
	r := listed(3, "x x x", began)
	r.set = marker.NewSetID(began, time.Minute, 7)
	for i, st := range []Standing{{State: Voting}, {State: Quarantined, Until: began.Add(20 * time.Second)}, {State: Quarantined, Until: began.Add(40 * time.Second)}} {
		r.views[Place{i, 0}].told = st
	}
	if got := r.newUntil(began).Sub(began); got != 20*time.Second {
		t.Errorf("locks can be granted after %v", got)
	}
	r.views[Place{0, 0}].told = Standing{State: Starting}
	if got := r.newUntil(began).Sub(began); got != 40*time.Second {
		t.Errorf("locks can be granted after %v, while one starts", got)
	}
}

// The operator may say late that a set is new. That ends its first quarantine, and no other one.
func TestRosterAFlushIsNoPartOfANewSet(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	r.set, r.fresh = marker.NewSetID(now, rosterLimits.MaxQuarantine, 1), true
	for i := range 3 {
		for _, db := range []int{0, 3} {
			m := r.marker(Place{i, db}, r.set, 0, now)
			if i == 0 && db == 3 {
				m.Since, m.Quarantine = 5, rosterLimits.RestartDelay
			}
			r.shows(Place{i, db}, m.String())
		}
	}
	if got := r.plannedFor(0, now.Add(time.Minute)); got != "" {
		t.Errorf("it writes %s", got)
	}
}

// If four of five masters have forgotten and the fifth has gone, another process may be about to begin a set on them.
func TestRosterASetThatMayBeginIsWaitedFor(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	r.Step(Disconnected{Place{0, 0}, NotConnected}, now)
	for i := 1; i < 5; i++ {
		r.checked(Place{i, 0}, "", false, now, now)
	}
	for _, row := range []struct {
		after time.Duration
		want  string
	}{{rosterLimits.RestartDelay - 1, ""}, {rosterLimits.RestartDelay, "0 lacking emptied 30s"}} {
		for i := 1; i < 5; i++ {
			r.keepsAsking(Place{i, 0}, now.Add(row.after))
		}
		if got := r.plannedFor(1, now.Add(row.after)); got != row.want {
			t.Errorf("after %v it writes %q", row.after, got)
		}
	}
}
