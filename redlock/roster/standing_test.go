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
		for _, n := range r.Drain().Notices {
			told = append(told, *n.Standing)
		}
	}
	hear()
	told = nil
	for i := range 3 {
		r.Connected(Place{i, 15}, r.names(i), "", Replication{}, now)
		r.Noted(Place{i, 0}, Standing{State: Voting}, now)
	}
	r.Noted(Place{0, 15}, Standing{State: Voting}, now)
	r.Tick(now, rosterLimits)
	if hear(); len(told) > 0 || !r.Status(now).Ready() {
		t.Errorf("told at the first use: %+v, ready: %v", told, r.Status(now).Ready())
	}
	r.Disconnected(Place{1, 15}, NotConnected+": why", now)
	r.Noted(Place{0, 15}, Standing{State: Quarantined, Reason: "x"}, now)
	if hear(); len(told) != 2 || told[0].Reason != "in database 15: it is not connected: why" || told[1].Reason != "in database 15: x" {
		t.Errorf("told of what lasts: %+v", told)
	}
}

// A process that stood still has unread answers, which say nothing about its masters. A place that
// leaves questions unanswered for a whole beat is unreachable.
func TestRosterAMasterIsSilentForAWholeBeat(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	p := Place{0, 0}
	for i, row := range []struct {
		unanswered, late bool
		after            time.Duration // time since the last beat
		want             bool
	}{
		{true, false, 0, false},
		{true, false, BeatLength, true},
		{true, true, time.Minute, false}, // after a standstill the time starts anew
		{true, false, time.Millisecond, false},
		{false, false, BeatLength, false},
		{true, false, BeatLength, false},
		{true, false, 2 * BeatLength, true},
	} {
		now = now.Add(row.after)
		if got := r.Silent(p, row.unanswered, row.late, now); got != row.want {
			t.Errorf("beat %d: %v", i+1, got)
		}
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
		r.Connected(p, r.names(1), "", Replication{}, now)
		if st, _ := r.Checked(p, "", false, now, now); st.State == Voting || st.Reason != want {
			t.Errorf("database %d is %v: %s", db, st.State, st.Reason)
		}
	}
	later := now.Add(recently)
	for i := range 3 {
		r.Asked(Place{i, 0}, later, 0)
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
		r.Connected(p, r.names(i), "", Replication{}, now)
		st, _ := r.Checked(p, "", false, now, now)
		r.Noted(p, st, now)
	}
	if is := r.Status(now); !is.Ready() || r.VotingIn(marker.Databases) != 0 {
		t.Errorf("%+v, and masters %v vote there", is, r.VotingIn(marker.Databases))
	}
}

// A client waits for masters that may vote soon, and for those of which nothing is known yet.
func TestRosterProspects(t *testing.T) {
	now := worldBegan
	soon, late := now.Add(time.Second), now.Add(time.Minute)
	r := New(serversNamed(8), false, 0)
	for i, st := range []Standing{{State: Voting}, {State: Quarantined, Until: late}, {State: Quarantined, Until: soon}, {State: Rejected}, {State: Starting}} {
		p := Place{i, 0}
		r.Connected(p, r.names(i), "", Replication{}, now)
		r.shows(p, "")
		r.Noted(p, st, now)
	}
	r.Disconnected(Place{5, 0}, NotConnected, now)
	r.Connected(Place{6, 0}, "g", "", Replication{}, now)
	const a, c, e, f, g, h = 1 << 0, 1 << 2, 1 << 4, 1 << 5, 1 << 6, 1 << 7
	if got, want := r.Prospects(0, soon, late), (Prospects{a, a | c | e | f | g | h, g | h, now}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, at := range []time.Time{soon, late} {
		if got := r.Prospects(5, at, at).Moved; got != soon {
			t.Errorf("the first use of a database counts as its last change: %v", got)
		}
	}
	if n, until := r.Quarantined(0, now); n != 2 || until != soon {
		t.Errorf("%d are in quarantine until %v", n, until.Sub(now))
	}
	r.Noted(Place{4, 0}, Standing{State: Quarantined, Until: late}, now)
	for at, want := range map[time.Time]time.Time{now: soon, late: late} {
		if n, until := r.Quarantined(0, at); n != 3 || until != want {
			t.Errorf("after %v, %d are in quarantine until %v", at.Sub(now), n, until.Sub(now))
		}
	}
}

func TestRosterIsUnsettledWhileAMasterIsStarting(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for _, state := range []State{Voting, Quarantined, Rejected, Starting} {
		r.Noted(Place{1, 3}, Standing{State: state}, now)
		if got := r.Unsettled(); got != (state == Starting) {
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
	r.Drain()
	noted := func(st Standing) string {
		r.Noted(p, st, now)
		news := r.Drain()
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
	if r.SetServer(0, Server{Name: "z"}); noted(Standing{State: Starting, Reason: "y"}) != "false 1" {
		t.Error("another name is not told")
	}
	if !r.Disconnected(p, "x", now) || r.Disconnected(p, "x", now) {
		t.Error("a lost connection is news once")
	}
	if r.Drain(); noted(Standing{State: Voting}) != "false 0" {
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
		r.Noted(Place{1, 0}, row.zero, now)
		r.Noted(Place{1, 3}, row.other, now)
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
	r.Left(1)
	r.Left(4)
	r.reason = "two other sets have as many masters"
	is := r.Status(worldBegan)
	if is.Reason != "" || is.Masters[1].Reason != NotConnected || len(is.Others) != 2 || is.Others[1].Reason != Unlisted {
		t.Errorf("%+v", is)
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
		return len(r.Drain().Notices)
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
		r.Connected(Place{i, 0}, r.names(i), "", Replication{}, worldBegan)
		r.Noted(Place{i, 0}, Standing{State: Voting}, worldBegan)
	}
	r.Drain()
	r.reason = "another"
	if told(time.Hour)+told(2*time.Hour) > 0 {
		t.Error("two of three masters vote, and it is said that no lock can be decided")
	}
}

func TestRosterAPlaceThatIsBeingDialledIsNotSilent(t *testing.T) {
	if New(serversNamed(1), false, 0).Silent(Place{0, 9}, true, false, worldBegan) {
		t.Error("it is silent")
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
			r.Connected(p, r.names(i), "", Replication{}, now)
			r.Noted(p, Standing{State: Voting}, now)
		}
	}
	r.Drain()
	p, state := Place{2, databases - 1}, Voting
	return r, func() {
		state = Voting + Quarantined - state
		r.Noted(p, Standing{State: state}, now)
		r.Drain()
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
	if r, _ := changing(6); !slices.Equal(r.Databases(), []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("the databases are %v", r.Databases())
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
