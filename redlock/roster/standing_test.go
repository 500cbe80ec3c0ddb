package roster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// These tests check what people are told about the state of masters.

// A database that is used for the first time is being dialled at first. That is not reported. The
// result is, with the number of the database.
func TestRosterTheFirstUseOfADatabaseIsNoNews(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	var told []MasterStatus
	hear := func() {
		for _, n := range r.Ready().Notices {
			told = append(told, *n.Standing)
		}
	}
	hear()
	told = nil
	for i := range 3 {
		r.Step(Connected{Place: Place{i, 15}, Run: r.names(i)}, now)
		r.Step(Noted{Place{i, 0}, Standing{State: Voting}}, now)
	}
	r.Step(Noted{Place{0, 15}, Standing{State: Voting}}, now)
	r.Tick(now, rosterLimits)
	if hear(); len(told) > 0 || !r.Status(now).Ready() {
		t.Errorf("told at the first use: %+v, ready: %v", told, r.Status(now).Ready())
	}
	r.Step(Disconnected{Place{1, 15}, NotConnected + ": why"}, now)
	r.Step(Noted{Place{0, 15}, Standing{State: Quarantined, Reason: "x"}}, now)
	if hear(); len(told) != 2 || told[0].Reason != "in database 15: it is not connected: why" || told[1].Reason != "in database 15: x" {
		t.Errorf("told of what lasts: %+v", told)
	}
}

// What happens to a whole server is on record in the databases that one script can write to. So no
// other database may hold a lock, nor does it get a marker.
func TestRosterDatabasesBeyondTheScriptsReachHoldNoLocks(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for db, want := range map[int]string{
		marker.Databases - 1: "its marker is missing",
		marker.Databases:     "only databases 0 to 1023 can hold locks",
	} {
		p := Place{1, db}
		r.Step(Connected{Place: p, Run: r.names(1)}, now)
		if st, _ := r.checked(p, "", false, now, now); st.State == Voting || st.Reason != want {
			t.Errorf("database %d is %v: %s", db, st.State, st.Reason)
		}
	}
	later := now.Add(recently)
	for i := range 3 {
		r.Step(Asked{Place{i, 0}, later, 0}, later)
	}
	for p, s := range r.views {
		if p.DB != 0 {
			s.asked = later // and its marker is missing still
		}
	}
	if writes := r.Tick(later, rosterLimits); len(writes) != 1 || writes[0].DB != marker.Databases-1 {
		t.Errorf("markers are written: %+v", writes)
	}
}

// A client that asks for a lock in such a database does not make the masters unready for all others.
func TestRosterADatabaseThatHoldsNoLocksDoesNotCountForReadiness(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for i := range 3 {
		p := Place{i, marker.Databases}
		r.Step(Connected{Place: p, Run: r.names(i)}, now)
		st, _ := r.checked(p, "", false, now, now)
		r.Step(Noted{p, st}, now)
	}
	if is := r.Status(now); !is.Ready() || r.are(marker.Databases, Voting) != 0 {
		t.Errorf("%+v, and masters %v vote there", is, r.are(marker.Databases, Voting))
	}
}

// A client waits for masters that may vote soon, and for those of which nothing is known yet.
func TestRosterProspects(t *testing.T) {
	now := worldBegan
	soon, late := now.Add(time.Second), now.Add(time.Minute)
	r := New(serversNamed(8), false, 0)
	for i, st := range []Standing{{State: Voting}, {State: Quarantined, Until: late}, {State: Quarantined, Until: soon}, {State: Rejected}, {State: Starting}} {
		p := Place{i, 0}
		r.Step(Connected{Place: p, Run: r.names(i)}, now)
		r.shows(p, "")
		r.Step(Noted{p, st}, now)
	}
	r.Step(Disconnected{Place{5, 0}, NotConnected}, now)
	r.Step(Connected{Place: Place{6, 0}, Run: "g"}, now)
	const a, b, c, e, f, g, h = 1 << 0, 1 << 1, 1 << 2, 1 << 4, 1 << 5, 1 << 6, 1 << 7
	if got, want := r.Prospects(0, soon, late), (Prospects{Voting: a, Quarantined: b | c, Hopeful: a | c | e | f | g | h, Arriving: g | h, Moved: now, Until: late}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, at := range []time.Time{soon, late} {
		if got := r.Prospects(5, at, at).Moved; got != soon {
			t.Errorf("the first use of a database counts as its last change: %v", got)
		}
	}
	if p := r.Prospects(0, now, now); p.Until != soon {
		t.Errorf("the first of those in quarantine is to vote at %v", p.Until.Sub(now))
	}
	r.Step(Noted{Place{4, 0}, Standing{State: Quarantined, Until: late}}, now)
	for at, want := range map[time.Time]time.Time{now: soon, late: late} {
		if p := r.Prospects(0, at, at); p.Quarantined != b|c|e || p.Until != want {
			t.Errorf("after %v, %v are in quarantine until %v", at.Sub(now), p.Quarantined, p.Until.Sub(now))
		}
	}
}

func TestRosterIsUnsettledWhileAMasterIsStarting(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for _, state := range []State{Voting, Quarantined, Rejected, Starting} {
		r.Step(Noted{Place{1, 3}, Standing{State: state}}, now)
		r.Tick(now, rosterLimits)
		if got := r.Ready().Unsettled; got != (state == Starting) {
			t.Errorf("%v: %v", state, got)
		}
	}
}

func TestStatusIsReadyIfAQuorumVotes(t *testing.T) {
	for voting := range 4 {
		s := Status{Masters: make([]MasterStatus, 3), Needed: 2}
		for i := range voting {
			s.Masters[i].State = Voting
		}
		if got := s.Ready(); got != (voting >= 2) {
			t.Errorf("%d of 3 vote: %v", voting, got)
		}
	}
}

// A place has news if its state or reason changes. People are told of another name, too.
func TestRosterWhatIsNews(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	p := Place{0, 0}
	r.Ready()
	noted := func(st Standing) string {
		r.Step(Noted{p, st}, now)
		news := r.Ready()
		return fmt.Sprint(news.Turned, " ", len(news.Notices))
	}
	for i, row := range []struct {
		is   Standing
		want string
	}{
		{Standing{State: Voting}, "false 0"},
		{Standing{State: Quarantined, Reason: "x"}, "true 1"},
		{Standing{State: Quarantined, Reason: "y"}, "true 1"},
		{Standing{State: Quarantined, Reason: "y", Until: now}, "false 0"},
		{Standing{State: Starting, Reason: "y"}, "true 1"},
	} {
		if got := noted(row.is); got != row.want {
			t.Errorf("%d: %s, want %s", i+1, got, row.want)
		}
	}
	r.Step(Listed{0, Server{Name: "z"}}, now)
	r.Step(Connected{Place: p, Run: "z"}, now)
	if noted(Standing{}) != "false 1" {
		t.Error("another name is not told")
	}
	r.Step(Disconnected{p, "x"}, now)
	if !r.Ready().Turned {
		t.Error("a lost connection is no news")
	}
	if r.Step(Disconnected{p, "x"}, now); r.Ready().Turned {
		t.Error("a lost connection is news again")
	}
	if r.Ready(); noted(Standing{State: Voting}) != "false 0" {
		t.Error("a place that is not connected has news")
	}
}

// A master is as its worst database.
func TestRosterStatusOfAMaster(t *testing.T) {
	now := worldBegan
	until := now.Add(time.Minute)
	for _, row := range []struct {
		zero, other Standing
		want        string
	}{
		{Standing{State: Quarantined, Reason: "x", Until: until}, Standing{State: Voting}, "quarantined x 1m0s"},
		{Standing{State: Quarantined, Reason: "x", Until: until}, Standing{State: Quarantined, Reason: "y"}, "quarantined x 1m0s"},
		{Standing{State: Voting}, Standing{State: Starting, Reason: "y", Until: until}, "starting in database 3: y 0s"},
	} {
		r := votingRoster(3, now)
		r.Step(Noted{Place{1, 0}, row.zero}, now)
		r.Step(Noted{Place{1, 3}, row.other}, now)
		is := r.Status(now).Masters[1]
		left := time.Duration(0)
		if !is.Until.IsZero() {
			left = is.Until.Sub(now)
		}
		if got := fmt.Sprint(is.State, " ", is.Reason, " ", left); got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
}

// The list and the record may differ.
func TestRosterStatusOfAllPlaces(t *testing.T) {
	r := resizedRoster("1 1 1 2- 3-", worldBegan)
	r.servers = r.servers[:3]
	for _, i := range []int{1, 4} {
		delete(r.views, Place{i, 0})
	}
	r.reason = "two other sets have as many masters"
	is := r.Status(worldBegan)
	if is.Reason != "" || is.Masters[1].Reason != NotConnected || len(is.Others) != 2 || is.Others[1].Reason != Unlisted {
		t.Errorf("%+v", is)
	}
	r = resizedRoster("1 1 1", worldBegan)
	r.servers = serversNamed(5)
	if is := r.Status(worldBegan); len(is.Others) != 2 {
		t.Errorf("two are listed beyond the record: %+v", is.Others)
	}
	if is := New(serversNamed(3), false, 0).Status(worldBegan); is.Reason == "" {
		t.Error("it does not say why there is no set")
	}
}

// The reason why there is no set is logged once, when it has lasted. An embedded master votes without a set.
func TestRosterTellsOnceWhyThereIsNoSet(t *testing.T) {
	r := New(serversNamed(3), false, 0)
	told := func(after time.Duration) int {
		r.tellNoSet(worldBegan.Add(after))
		return len(r.Ready().Notices)
	}
	for _, row := range []struct {
		after time.Duration
		want  int
	}{{0, 0}, {time.Second, 0}, {noSetPause, 1}, {time.Minute, 0}} {
		if got := told(row.after); got != row.want {
			t.Errorf("after %v: %d lines", row.after, got)
		}
	}
	for i := range 2 {
		r.Step(Connected{Place: Place{i, 0}, Run: r.names(i)}, worldBegan)
		r.Step(Noted{Place{i, 0}, Standing{State: Voting}}, worldBegan)
	}
	r.Ready()
	r.reason = "another"
	if told(time.Hour)+told(2*time.Hour) > 0 {
		t.Error("two of three masters vote, and it is said that no lock can be decided")
	}
}

// changing returns a roster whose masters vote in many databases, and a function that
// changes the state of one place.
func changing(databases int) (r *Roster, change func()) {
	now := time.Now()
	r = votingRoster(5, now)
	for i := range 5 {
		for db := range databases {
			p := Place{i, db}
			r.Step(Connected{Place: p, Run: r.names(i)}, now)
			r.Step(Noted{p, Standing{State: Voting}}, now)
		}
	}
	r.Ready()
	p, state := Place{2, databases - 1}, Voting
	return r, func() {
		state = Voting + Quarantined - state
		r.Step(Noted{p, Standing{State: state}}, now)
		r.Ready()
	}
}

// A change of state is cheap, however many databases are in use: every vote waits for it.
func TestRosterAChangeCostsTheSameInManyDatabases(t *testing.T) {
	allocations := func(databases int) float64 {
		_, change := changing(databases)
		return testing.AllocsPerRun(100, change)
	}
	if few, many := allocations(4), allocations(marker.Databases); many > few {
		t.Errorf("%v allocations with many databases, %v with four", many, few)
	}
	if r, _ := changing(6); !slices.Equal(r.dbs, []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("the databases are %v", r.dbs)
	}
}

func BenchmarkRosterChange(b *testing.B) {
	for _, databases := range []int{16, 256} {
		b.Run(fmt.Sprint(databases), func(b *testing.B) {
			_, change := changing(databases)
			for b.Loop() {
				change()
			}
		})
	}
}
