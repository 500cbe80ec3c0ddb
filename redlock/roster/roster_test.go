package roster

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"redlock-proxy/redlock/marker"
)

// These tests show a roster observations whose timing no timeline can produce.

// votingRoster returns a roster of n masters that all vote in databases 0 and 3.
func votingRoster(n int, now time.Time) *Roster {
	r := New(serversNamed(n), false, 0)
	r.set, r.limits = "s", rosterLimits
	for i := range n {
		for _, db := range []int{0, 3} {
			p := Place{i, db}
			r.Step(Connected{Place: p, Run: r.names(i)}, now)
			r.shows(p, r.marker(p, "s", 0, now).String())
			r.Step(Noted{p, Standing{State: Voting}}, now)
		}
	}
	return r
}

// serversNamed returns n servers: a, b, c, ...
func serversNamed(n int) (servers []Server) {
	for i := range n {
		servers = append(servers, Server{Name: string(rune('a' + i))})
	}
	return servers
}

// checked has a place's marker read, and returns what follows.
func (r *Roster) checked(p Place, text string, broken bool, asked, now time.Time) (Standing, marker.Marker) {
	r.Step(Checked{Place: p, Text: text, Broken: broken, Asked: asked}, now)
	return r.Judge(p)
}

// shows reads a place's marker. The question was asked late enough for every rule.
func (r *Roster) shows(p Place, text string) State {
	now := time.Now()
	st, _ := r.checked(p, text, false, now.Add(time.Hour), now)
	return st.State
}

// lookAgain reads the marker of a place once more, and returns the state.
func (r *Roster) lookAgain(p Place) State {
	return r.shows(p, r.views[p].text)
}

// keepsAsking has a process read the marker of a place again and again until then.
func (r *Roster) keepsAsking(p Place, until time.Time) {
	for s := r.views[p]; s.asked.Before(until); {
		r.Step(Asked{p, s.asked.Add(min(BeatPause, until.Sub(s.asked))), 0}, s.asked.Add(min(BeatPause, until.Sub(s.asked))))
	}
}

func TestRosterAJumpIsNotMissedByADatabaseThatIsDialledAnew(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	p := Place{0, 3}
	marker := r.views[p].text
	r.Step(Disconnected{p, NotConnected}, now)
	r.jumped(0, Jump{time.Minute, time.Minute}, now)
	r.Step(Connected{Place: p, Run: r.names(0)}, now)
	if state := r.shows(p, marker); state != Starting {
		t.Errorf("the clock of its master has jumped, and it is %v", state)
	}
}

// A master restarts, and the connection to one of its databases comes back first. It shows that the clock
// has jumped. The jump is written down through database 0, which comes back later.
func TestRosterAJumpIsNotForgottenByADatabaseThatComesBackLater(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	zero, other := Place{0, 0}, Place{0, 3}
	r.Step(Disconnected{zero, NotConnected}, now)
	r.Step(Disconnected{other, NotConnected}, now)
	r.Step(Connected{Place: other, Run: "another-run"}, now)
	r.jumped(0, Jump{time.Minute, time.Minute}, now)
	r.Step(Connected{Place: zero, Run: "another-run"}, now)
	m := r.marker(zero, "s", 0, now)
	m.Run = "another-run"
	if st, _ := r.checked(zero, m.String(), false, now.Add(time.Hour), now); st.State != Starting {
		t.Errorf("the clock of the master has jumped, and its database 0 is %v: %s", st.State, st.Reason)
	}
}

// A clock jumps, a database is disconnected before that is written down, and the clock jumps again. The
// write tells of both jumps.
func TestRosterAJumpThatGrewIsWrittenDownForADatabaseThatIsAway(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	away := Place{0, 3}
	text := r.views[away].text
	r.jumped(0, Jump{time.Minute, time.Minute}, now)
	r.Step(Disconnected{away, NotConnected}, now)
	r.jumped(0, Jump{time.Hour, time.Hour}, now)
	r.Step(Wrote{Write{Place: Place{0, 0}, jump: r.views[Place{0, 0}].jump}}, now)
	r.Step(Connected{Place: away, Run: r.names(0)}, now)
	if st, _ := r.checked(away, text, false, now.Add(time.Hour), now); st.State != Voting {
		t.Errorf("after both jumps were written down, the database is %v: %s", st.State, st.Reason)
	}
}

func TestRosterAJumpStaysOneWhenThisProcessIsSuspendedLater(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	r.jumped(0, Jump{time.Minute, time.Minute}, now)
	later := now.Add(time.Minute)
	for i := range 5 {
		r.jumped(i, Jump{time.Second, time.Second}, later)
	}
	r.Tick(later, rosterLimits)
	for i, want := range []State{Starting, Voting, Voting, Voting, Voting} {
		if got := r.lookAgain(Place{i, 0}); got != want {
			t.Errorf("master %d is %v, want %v", i+1, got, want)
		}
	}
}

func TestRosterTheLongestTTLIsThatOfAllDatabases(t *testing.T) {
	r := votingRoster(3, time.Now())
	for i := range 3 {
		r.Step(Noted{Place{i, 3 * (i % 2)}, Standing{State: Voting, Longest: time.Hour}}, time.Now())
	}
	for _, m := range r.Status(time.Now()).Masters {
		if m.Longest != time.Hour {
			t.Errorf("the longest TTL granted is %v, want 1h", m.Longest)
		}
	}
}

// A process that has just started finds that masters have forgotten. A master that may know of a
// longer TTL is unreachable. Then the roster assumes the longest TTL that a quarantine covers.
func TestRosterWhatNobodyCanTellIsTheLongestTTLThatIsCovered(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		forgot, away []int
		lived        bool // the process had run before
		want         time.Duration
	}{
		"one forgot":                     {[]int{0}, nil, false, 30 * time.Second},
		"one forgot, one is away":        {[]int{0}, []int{4}, false, 30 * time.Second},
		"one forgot, two are":            {[]int{0}, []int{3, 4}, true, 10 * time.Minute},
		"one forgot, three are":          {[]int{0}, []int{2, 3, 4}, true, 10 * time.Minute},
		"one forgot, all others are":     {[]int{0}, []int{1, 2, 3, 4}, true, 10 * time.Minute},
		"two forgot":                     {[]int{0, 1}, nil, false, 30 * time.Second},
		"two forgot, one is away":        {[]int{0, 1}, []int{4}, false, 10 * time.Minute},
		"two forgot, one is away, lived": {[]int{0, 1}, []int{4}, true, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			r := votingRoster(5, now)
			r.recalls = row.lived
			for _, i := range row.forgot {
				r.shows(Place{i, 0}, "")
			}
			for _, i := range row.away {
				r.Step(Disconnected{Place{i, 0}, NotConnected}, now)
			}
			for _, i := range []int{1, 2, 3, 4} {
				if s := r.views[Place{i, 0}]; s.present() {
					r.shows(Place{i, 0}, s.text)
				}
			}
			got := map[int]time.Duration{}
			for _, m := range r.Tick(now.Add(time.Minute), rosterLimits) {
				if m.DB == 0 && m.Marker.Since == marker.SinceNow {
					got[m.Master] = m.Marker.Quarantine
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

var rosterLimits = Limits{RestartDelay: 30 * time.Second, MaxQuarantine: 10 * time.Minute}

// markedBy returns the places that a plan writes to.
func (r *Roster) markedBy(now time.Time) []Place {
	var places []Place
	for _, m := range r.Tick(now, rosterLimits) {
		places = append(places, m.Place)
	}
	return places
}

// another returns a marker of another set, for a place.
func (r *Roster) another(i int, change func(*marker.Marker)) string {
	m := r.marker(Place{i, 0}, "another", 0, time.Now())
	change(&m)
	return m.String()
}

// If another set is being founded on masters that have forgotten this one, the roster writes
// nothing in between. A master that came from elsewhere is no such set, nor is one whose set was not
// finished within RestartDelay.
func TestRosterNothingIsWrittenWhileAnotherSetIsBeingFounded(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		change func(*marker.Marker)
		listed int
		after  time.Duration
		writes bool
	}{
		"a set that these masters could be":   {func(*marker.Marker) {}, 5, 29 * time.Second, false},
		"a set that nobody finished":          {func(*marker.Marker) {}, 5, 31 * time.Second, true},
		"a set in which it has another place": {func(m *marker.Marker) { m.Member = 4 }, 5, 29 * time.Second, true},
		"a set of another size":               {func(m *marker.Marker) { m.Members, m.Joined = 7, append(m.Joined, "1", "1") }, 5, 29 * time.Second, true},
		"a set that is older than a change":   {func(m *marker.Marker) { m.Joined = m.Joined.WithText(4, "1+") }, 5, 29 * time.Second, true},
		"a set of a shorter list":             {func(*marker.Marker) {}, 6, 29 * time.Second, false},
		"a set of this list":                  {func(m *marker.Marker) { m.Members, m.Joined = 6, append(m.Joined, "1") }, 6, 29 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := votingRoster(5, now)
			r.servers = serversNamed(row.listed)
			r.shows(Place{0, 0}, r.another(0, row.change))
			r.shows(Place{1, 0}, "")
			if got := slices.Contains(r.markedBy(now.Add(row.after)), Place{1, 0}); got != row.writes {
				t.Errorf("the master that has forgotten is marked: %v", got)
			}
		})
	}
}

// If no master tells of the set, another process may begin a new one. The first master decides, so the others
// get no marker before it, or only after RestartDelay, because it may take none.
func TestRosterTheFirstMasterDecidesBetweenSets(t *testing.T) {
	for name, row := range map[string]struct {
		tells int // the place of a master that tells of the set
		after time.Duration
		want  []Place
	}{
		"nobody tells of it":              {-1, 29 * time.Second, []Place{{0, 0}}},
		"the first one has it":            {0, 29 * time.Second, []Place{{1, 0}, {2, 0}}},
		"another one tells of it":         {2, 29 * time.Second, []Place{{0, 0}, {1, 0}}},
		"the first one cannot be written": {-1, 31 * time.Second, []Place{{0, 0}, {1, 0}, {2, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			r := votingRoster(3, now)
			for i := range 3 {
				if i != row.tells {
					r.shows(Place{i, 0}, "")
				}
			}
			if got := r.markedBy(now.Add(row.after)); !slices.Equal(got, row.want) {
				t.Errorf("markers are written to %v", got)
			}
		})
	}
}

// The clock of a master of another set is nobody's business here: the master is rejected, as long as it has that marker.
func TestRosterAMasterOfAnotherSetIsRejectedWhateverItsClockDoes(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	p := Place{0, 0}
	r.jumped(0, Jump{time.Hour, time.Hour}, now)
	if state := r.lookAgain(p); state != Starting {
		t.Errorf("after a jump it is %v", state)
	}
	if state := r.shows(p, r.another(0, func(*marker.Marker) {})); state != Rejected {
		t.Errorf("of another set it is %v", state)
	}
}

// A set gives way to another only if a quorum belongs to the other.
func TestRosterASetGivesWayOnlyToAQuorum(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	r.Step(Disconnected{Place{3, 0}, NotConnected}, now)
	r.Step(Disconnected{Place{4, 0}, NotConnected}, now)
	for i := range 3 {
		if r.Tick(now, rosterLimits); r.set != "s" {
			t.Fatalf("%d of 5 masters have another set, and it is taken over", i)
		}
		r.shows(Place{i, 0}, r.another(i, func(*marker.Marker) {}))
	}
	if r.Tick(now, rosterLimits); r.set != "another" {
		t.Error("a quorum belongs to another set, and it is not taken over")
	}
}

// A missing marker and a jump wait a little before they are written down: for another process's new
// set, and for the other masters' clocks.
func TestRosterWhatIsSeenIsNotWrittenDownAtOnce(t *testing.T) {
	r := votingRoster(5, time.Now())
	now := time.Now()
	r.checked(Place{0, 0}, "", false, now, now)
	r.jumped(1, Jump{time.Minute, time.Minute}, time.Now())
	r.views[Place{4, 0}].asked = now.Add(-time.Minute) // and not since then
	if got := r.markedBy(time.Now()); len(got) > 0 {
		t.Errorf("marked at once: %v", got)
	}
	got := r.markedBy(time.Now().Add(time.Second))
	if want := []Place{{0, 0}, {1, 0}}; !slices.Equal(got, want) {
		t.Errorf("marked later: %v, want %v", got, want)
	}
}

// A marker counts only for its own run and epoch.
func TestRosterAMarkerOfAnotherRunOrEpochDoesNotVote(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	p := Place{0, 0}
	text := r.views[p].text
	r.Step(Connected{Place: p, Run: "another run"}, now)
	if state := r.shows(p, text); state != Starting {
		t.Errorf("restarted with its data, and %v", state)
	}
	r.Propose(Change{Master: 4, Name: "m6", Run: ""}, now)
	if got := r.lookAgain(Place{1, 0}); got != Starting {
		t.Errorf("it has not heard of the epoch, and is %v", got)
	}
}

// A server with two names on the list founds no set.
func TestRosterOneServerTwiceFoundsNoSet(t *testing.T) {
	now := time.Now()
	r := New(serversNamed(3), true, 0)
	for i, run := range []string{"x", "y", "x"} {
		r.Step(Connected{Place: Place{i, 0}, Run: run}, now)
		r.shows(Place{i, 0}, "")
	}
	if got := r.markedBy(now); len(got) > 0 || !strings.Contains(r.reason, "a and c are one and the same server") {
		t.Errorf("%v, %s", got, r.reason)
	}
}

// A leftover database of a forgotten set keeps what it knows of TTLs.
func TestRosterALeftOverDatabaseIsInQuarantineForItsOwnLongestTTL(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	p := Place{0, 3}
	old := r.marker(p, "before", 0, now)
	old.Longest = 5 * time.Minute
	r.shows(p, old.String())
	for _, m := range r.Tick(now.Add(time.Minute), rosterLimits) {
		if m.Place == p && m.Marker.Quarantine == 5*time.Minute && m.Marker.Set == "s" {
			return
		}
	}
	t.Error("it is not marked so")
}

// Another jump comes while one is being written down.
func TestRosterAJumpThatGrewIsNotWrittenDown(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	by := func(d time.Duration) Jump { return Jump{d, d} }
	r.jumped(0, by(time.Minute), now)
	marks := r.Tick(now.Add(time.Second), rosterLimits)
	if len(marks) != 1 || marks[0].Cause != ClockJumped {
		t.Fatalf("planned: %+v", marks)
	}
	r.jumped(0, by(time.Minute), now.Add(2*time.Second))
	r.Step(Wrote{marks[0]}, time.Now())
	for _, db := range []int{0, 3} {
		if state := r.lookAgain(Place{0, db}); state != Starting {
			t.Errorf("database %d is %v", db, state)
		}
	}
	marks = r.Tick(now.Add(3*time.Second), rosterLimits)
	if len(marks) != 1 {
		t.Fatalf("planned again: %+v", marks)
	}
	r.Step(Wrote{marks[0]}, time.Now())
	if state := r.lookAgain(Place{0, 3}); state != Voting {
		t.Errorf("written down, and %v", state)
	}
}

// A database other than 0 is the first to connect, and sees a jump. The jump is written down by way
// of database 0.
func TestRosterAJumpIsKnownToADatabaseThatIsConnectedLater(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	zero := Place{0, 0}
	marker := r.views[zero].text
	delete(r.views, zero)
	r.jumped(0, Jump{time.Minute, time.Minute}, now)
	r.Step(Connected{Place: zero, Run: r.names(0)}, now)
	if state := r.shows(zero, marker); state != Starting {
		t.Errorf("the clock of its master has jumped, and it is %v", state)
	}
	if got := r.markedBy(now.Add(time.Minute)); !slices.Equal(got, []Place{zero}) {
		t.Errorf("marked: %v", got)
	}
}

// A batch of another database may be answered before a jump was written down, and read afterwards.
func TestRosterWhatWasAskedBeforeAJumpWasWrittenDownDoesNotCount(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	p := Place{0, 3}
	text := r.views[p].text
	r.jumped(0, Jump{time.Minute, time.Minute}, now)
	marks := r.Tick(now.Add(time.Second), rosterLimits)
	if len(marks) != 1 {
		t.Fatalf("planned: %+v", marks)
	}
	written := now.Add(2 * time.Second)
	r.Step(Wrote{marks[0]}, written)
	for asked, want := range map[time.Duration]State{-time.Millisecond: Starting, time.Millisecond: Voting} {
		if st, _ := r.checked(p, text, false, written.Add(asked), written.Add(time.Second)); st.State != want {
			t.Errorf("asked %v after it was written down, and %v, want %v", asked, st.State, want)
		}
	}
}

// A process that stood still knows an old run of a server. The server may have restarted meanwhile
// and got its marker from others. If the process began an epoch with the old run, nobody would
// count that master any more.
func TestRosterNoEpochBeginsByWhatWasReadLongAgo(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	clear(r.all)
	p := Place{0, 0}
	r.Step(Connected{Place: p, Run: "another"}, now)
	own := r.marker(p, "s", 0, now)
	own.Run = "a"
	r.checked(p, own.String(), false, now, now)
	later := now.Add(time.Minute)
	if r.Tick(later, rosterLimits); r.epoch != 1 {
		t.Error("an epoch begins by what was read a minute ago")
	}
	r.Step(Asked{p, later, 0}, later)
	if r.Tick(later, rosterLimits); r.epoch != 2 {
		t.Error("no epoch begins by what has just been read")
	}
}

// Meanwhile another process may have given the master its marker, and it may have granted a lock and
// forgotten it. So its marker is missing since the last reading only.
func TestRosterAMissingMarkerThatWasReadLongAgoIsMissingAnew(t *testing.T) {
	began := time.Now()
	p := Place{0, 0}
	for name, row := range map[string]struct {
		happens func(r *Roster, later time.Time)
		after   time.Duration
		anew    bool
	}{
		"it was read again at once":   {after: recently},
		"it was not read again":       {func(r *Roster, later time.Time) { r.Tick(later, rosterLimits) }, recently + 1, true},
		"it was soon read again":      {func(r *Roster, later time.Time) { r.Step(Asked{p, later, 0}, later) }, recently, false},
		"it was read again late":      {func(r *Roster, later time.Time) { r.Step(Asked{p, later, 0}, later); r.Tick(later, rosterLimits) }, recently + 1, true},
		"it is judged again, late":    {func(*Roster, time.Time) {}, recently + 1, true},
		"the machine was suspended":   {func(r *Roster, later time.Time) { r.Tick(stepped(later, time.Hour), rosterLimits) }, time.Second, true},
		"its clock has jumped":        {func(r *Roster, later time.Time) { r.jumped(0, Jump{time.Hour, time.Hour}, later) }, time.Second, true},
		"another's clock has jumped":  {func(r *Roster, later time.Time) { r.jumped(1, Jump{time.Hour, time.Hour}, later) }, time.Second, false},
		"the wall clock was set back": {func(r *Roster, later time.Time) { r.Tick(stepped(later, -time.Hour), rosterLimits) }, time.Second, false},
	} {
		r := votingRoster(3, began)
		r.checked(p, "", false, began, began)
		s, later := r.views[p], began.Add(row.after)
		s.blank = true
		if row.happens != nil {
			row.happens(r, later)
		}
		r.checked(p, "", false, later, later)
		if anew := s.since.Equal(later); anew != row.anew || s.blank == anew {
			t.Errorf("%s: missing since then: %v, as when the set began: %v", name, anew, s.blank)
		}
	}
}

// stepped returns a time read after the wall clock was stepped. Its monotonic part stays.
func stepped(t time.Time, by time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t)) // the first field: a flag, 33 bits of seconds, 30 of nanoseconds
	*wall += uint64(by/time.Second) << 30
	return t
}

// The answers of a slow master are all too old. They do not call for a Tick, which would ask again.
func TestRosterAnswersThatAreTooOldDoNotCallForMore(t *testing.T) {
	asked := time.Now()
	r := votingRoster(3, asked)
	for range 3 {
		asked = asked.Add(time.Minute)
		came := asked.Add(recently + 1)
		for i := 1; i < 3; i++ {
			r.Step(Asked{Place{i, 0}, came, 0}, came)
		}
		before := r.Ready().Version
		r.checked(Place{0, 0}, "", false, asked, came)
		if news := r.Ready(); news.Changed || news.Version == before {
			t.Errorf("an old answer asks for a Tick: %v, or is not judged again: %v", news.Changed, news.Version == before)
		}
		r.Tick(came, rosterLimits)
		if r.Ready().Changed {
			t.Error("a Tick asks for another one")
		}
	}
}

// What a server forgot while it was a replica is as old as that time, not as its marker.
func TestRosterAReplicaForAMomentHasJustForgotten(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	later := now.Add(time.Hour)
	long := r.views[Place{1, 0}].marker
	long.Longest = 5 * time.Minute
	r.checked(Place{1, 0}, long.String(), false, later, later)
	r.Step(Replicates{Place{0, 0}, Replication{ID: "another", Was: true}}, later)
	later = later.Add(time.Minute)
	for i := range 5 {
		r.Step(Asked{Place{i, 0}, later, 0}, later)
	}
	marks := r.Tick(later, rosterLimits)
	if len(marks) == 0 || marks[0].Cause != Replaced || marks[0].Marker.Quarantine != 5*time.Minute {
		t.Errorf("marked: %+v", marks)
	}
}

// The time since which a server may have forgotten stays the same when a longer TTL is recorded.
func TestRosterALongerTTLOnRecordIsNoOtherMemory(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	p := Place{0, 0}
	since := r.views[p].since
	m := r.views[p].marker
	m.Longest = time.Minute
	r.checked(p, m.String(), false, now, now.Add(time.Hour))
	if !r.views[p].since.Equal(since) {
		t.Error("a longer TTL is taken for another memory")
	}
	m.Since = 5
	r.checked(p, m.String(), false, now, now.Add(time.Hour))
	if r.views[p].since.Equal(since) {
		t.Error("another memory is not seen")
	}
}

// The marker of database 0 was flushed long ago, and nobody could write it. Other databases voted
// meanwhile, and may be flushed just before it is written.
func TestRosterALongWaitInDatabase0CoversNoOther(t *testing.T) {
	began := time.Now()
	r := votingRoster(3, began)
	long := r.views[Place{1, 0}].marker
	long.Longest = 5 * time.Minute
	r.shows(Place{1, 0}, long.String())
	r.shows(Place{0, 0}, "")
	late := began.Add(2 * time.Hour)
	for i := range 3 {
		r.keepsAsking(Place{i, 0}, late)
	}
	if got := r.plannedFor(0, late); got != "0 here emptied 30s" {
		t.Errorf("it writes %q", got)
	}
}

// Whether a master may evict locks is a fact about its server process.
func TestRosterEvictionConcernsOneRunOfAServer(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	zero, other := Place{0, 0}, Place{0, 3}
	texts := map[Place]string{zero: r.views[zero].text, other: r.views[other].text}
	r.Step(Evicts{0, "allkeys-lru"}, now)
	if r.Step(Connected{Place: other, Run: "a"}, now); r.lookAgain(zero) != Rejected {
		t.Errorf("another connection to the same server: %v", r.lookAgain(zero))
	}
	r.jumped(0, Jump{time.Minute, time.Minute}, now)
	r.Step(Connected{Place: other, Run: "another run"}, now)
	st, _ := r.checked(other, texts[other], false, now, now)
	if st.Reason != "it has been restarted" {
		t.Errorf("another run of the server: %v %s", st.State, st.Reason)
	}
}

// A master that could evict locks votes when a marker records that it may have forgotten them. That
// marker was written to all its databases. What they answered to earlier questions does not count.
func TestRosterAnEvictionIsOverWhenItIsOnRecord(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	zero, other := Place{0, 0}, Place{0, 3}
	r.Step(Evicts{0, "allkeys-lru"}, now)
	r.Step(Evicts{0, ""}, now)
	m := r.views[zero].marker
	m.Longest = time.Minute
	if got := r.shows(zero, m.String()); got != Starting {
		t.Errorf("another TTL is on record, and it is %v", got)
	}
	m.Since = 1
	if got := r.shows(zero, m.String()); got != Voting {
		t.Errorf("the eviction is on record, and it is %v", got)
	}
	look := func(asked time.Time) (state State, again bool) {
		before := r.Ready().Version
		st, _ := r.checked(other, r.views[other].text, false, asked, time.Now())
		return st.State, r.Ready().Version != before
	}
	if state, again := look(now); state != Starting || !again {
		t.Errorf("the answer to an earlier question: %v, is judged again: %v", state, again)
	}
	for range 2 {
		if state, again := look(now.Add(time.Hour)); state != Voting || again {
			t.Errorf("the answer to a later question: %v, is judged again: %v", state, again)
		}
	}
	// A marker that is written anew for another reason does not concern the other databases.
	r.views[other].rewritten = time.Time{}
	m.Since = 2
	r.shows(zero, m.String())
	if state, _ := look(now); state != Voting {
		t.Errorf("another database is %v", state)
	}
}

// A text that is no marker tells nothing, even if it begins like one.
func TestRosterADamagedMarkerTellsNothing(t *testing.T) {
	r := votingRoster(3, time.Now())
	damaged := strings.Replace(r.views[Place{0, 0}].text, "member=1/3", "member=4/3", 1)
	if got := r.shows(Place{0, 0}, damaged); got != Rejected || r.remembering() != 2 {
		t.Errorf("it is %v, and %d masters remember", got, r.remembering())
	}
}

// Masters without a marker know nothing of the set, and so no TTL.
func TestRosterAMissingMarkerTellsNothing(t *testing.T) {
	r := New(serversNamed(3), false, 0)
	for i := range 3 {
		r.Step(Connected{Place: Place{i, 0}, Run: r.names(i)}, time.Now())
		r.shows(Place{i, 0}, "")
	}
	if r.remembering() != 0 || r.recalls {
		t.Errorf("%d masters remember, and the longest TTL is known: %v", r.remembering(), r.recalls)
	}
}

// A place may have forgotten until the last event that this process saw.
func TestRosterAPlaceMayHaveForgottenUntilTheLastEvent(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	p := Place{0, 0}
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	r.jumped(0, Jump{time.Minute, time.Minute}, at(1))
	if got := r.views[p].forgotAt(); got != at(1) {
		t.Errorf("after a jump: %v", got.Sub(now))
	}
	for i, text := range []string{"", "redlock-proxy/9 of a later version", ""} {
		if r.checked(p, text, false, at(2+i), at(2+i)); i < 2 && r.views[p].forgotAt() != at(2+i) {
			t.Errorf("after %q: %v", text, r.views[p].forgotAt().Sub(now))
		}
	}
	if got := r.views[p].forgotAt(); got != at(3) {
		t.Errorf("it was seen to have a marker after 3 s, and may have forgotten until %v", got.Sub(now))
	}
}

// Masters whose clocks jump one after another, by the same amount, did not jump together.
func TestRosterJumpsOneAfterAnotherAreNoStandstill(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for i := range 3 {
		r.jumped(i, Jump{time.Minute, time.Minute}, now)
		now = now.Add(standstillPause)
	}
	r.Tick(now, rosterLimits)
	for i := range 3 {
		if got := r.lookAgain(Place{i, 0}); got != Starting {
			t.Errorf("master %d is %v", i+1, got)
		}
	}
}

// Only markers of the own set say who the masters are, and together know the longest TTL.
func TestRosterAMarkerOfAnotherSetTeachesNothing(t *testing.T) {
	r := votingRoster(3, time.Now())
	r.recalls = false
	for i := 1; i < 3; i++ {
		r.shows(Place{i, 0}, r.another(i, func(m *marker.Marker) { m.Epoch, m.Joined = 9, m.Joined.WithText(0, "9@x/x-run") }))
	}
	if got := r.lookAgain(Place{0, 0}); got != Voting || r.epoch != 1 || r.recalls {
		t.Errorf("the master is %v in epoch %d, and the longest TTL is known: %v", got, r.epoch, r.recalls)
	}
}

// Two processes make two servers join at the same moment, in the same epoch.
func TestRosterTwoJoinsInOneEpoch(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	r.Propose(Change{Master: 2, Name: "d", Run: "d-run"}, now)
	m := r.marker(Place{0, 0}, "s", 0, now)
	m.Joined = m.Joined.WithText(2, "1").WithText(1, "2@x/x-run")
	if got := r.shows(Place{0, 0}, m.String()); got != Starting || !slices.Equal(r.joined, []string{"1", "2@x/x-run", "2@d/d-run"}) {
		t.Errorf("the master that has recorded one of them is %v, and the members are %v", got, r.joined)
	}
}

// A join is taken back only if no marker has told of it.
func TestRosterAJoinThatAMarkerTellsOfIsNotTakenBack(t *testing.T) {
	for recorded, want := range map[bool]string{true: "2@d/d-run", false: "1"} {
		now := time.Now()
		r := votingRoster(3, now)
		before := r.views[Place{0, 0}].text
		r.Propose(Change{Master: 2, Name: "d", Run: "d-run"}, now)
		r.Step(Connected{Place: Place{2, 0}, Run: "d-run"}, now)
		if r.shows(Place{0, 0}, before); recorded {
			r.shows(Place{0, 0}, r.marker(Place{0, 0}, "s", 0, now).String())
		}
		r.Step(Disconnected{Place{2, 0}, NotConnected}, now)
		if got := r.joined.Who(2); got != want {
			t.Errorf("recorded: %v, and the member is %s", recorded, got)
		}
	}
}

// A single master has nobody to ask for the longest TTL. So it does not wait for anybody.
func TestRosterASingleMasterLearnsFromNobody(t *testing.T) {
	now := time.Now()
	r := votingRoster(1, now)
	r.shows(Place{0, 0}, "")
	writes := r.Tick(now.Add(2*time.Second), rosterLimits)
	if len(writes) != 1 || writes[0].Marker.Quarantine != 30*time.Second {
		t.Errorf("it is given %+v", writes)
	}
}

// The caller may tell of an earlier question than that of a marker that was checked meanwhile.
func TestRosterAnEarlierQuestionIsNotTheLatest(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	late := now.Add(2 * time.Hour)
	r.Step(Asked{Place{0, 0}, late, 0}, late)
	if r.Step(Asked{Place{0, 0}, now, 0}, now); r.views[Place{0, 0}].asked != late {
		t.Error("the time of the latest question goes back")
	}
}
