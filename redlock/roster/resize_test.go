package roster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
)

// changingRoster knows these members. The first masters have recorded exactly these, with a lock of a
// minute and a token. The others have recorded the members before the last change.
func changingRoster(record string, exact int, began time.Time) *Roster {
	joined := members.List(strings.Fields(record))
	before := slices.Clone(joined)
	before[len(before)-1] = joined.Who(len(before) - 1)
	var servers []Server
	for i := range joined {
		servers = append(servers, Server{Name: string(rune('a' + i))})
	}
	r := New(servers, false, 1)
	r.limits = worldLimits
	for i := range joined {
		m := marker.Marker{Set: "s", Member: i + 1, Members: len(joined), Epoch: 9, Joined: joined, Run: "r" + servers[i].Name, Longest: time.Minute, Token: 7}
		if i >= exact {
			m.Epoch, m.Joined, m.Longest, m.Token = 8, before, time.Second, 5
		}
		p := Place{Master: i}
		r.Connected(p, m.Run, "", Replication{}, began)
		r.Checked(p, m.String(), false, began, began)
	}
	r.adopt(began)
	for i := range exact {
		r.Asked(Place{Master: i}, began.Add(1), 7)
	}
	return r
}

// resized returns the members after the next step of a change, which was kept on record for so long.
func resized(members string, exact int, kept time.Duration) string {
	now := worldBegan.Add(kept)
	r := changingRoster(members, exact, worldBegan)
	r.keepsExactly(0, worldBegan)
	for i := range r.joined {
		r.Asked(Place{Master: i}, now, 0)
		r.Noted(Place{Master: i}, Standing{State: Voting}, now)
	}
	r.resize(now)
	return strings.Join(r.joined, " ")
}

func TestAnotherNumberOfMastersIsDecidedStepByStep(t *testing.T) {
	const long = time.Minute
	for _, row := range []struct {
		members string
		exact   int
		kept    time.Duration
		want    string
	}{
		{"1 1 1 2@d;1+", 2, long, "1 1 1 2@d;1*"},
		{"1 1 1 2@d;1+", 1, long, "1 1 1 2@d;1+"}, // no quorum has it on record
		{"1 1 1 2@d;1+", 3, 2 * time.Second, "1 1 1 2@d;1+"},
		{"1 1 1 2@d;1*", 2, 0, "1 1 1 2@d;1="},
		{"1 1 1 2@d;1*", 1, 0, "1 1 1 2@d;1*"},
		{"1 1 1 1;0-", 3, long, "1 1 1 1;0~"},
		{"1 1 1 1;0-", 2, long, "1 1 1 1;0-"},
		{"1 1 1 1;0-", 4, 2 * time.Second, "1 1 1 1;0-"},
		{"1 1 1 1;0~", 3, 0, "1 1 1 1;0."},
		{"1 1 1 1;0~", 2, 0, "1 1 1 1;0~"},
		// Of two changes at once the addition is dropped.
		{"1 1 1 1;0- 2@e;1+", 3, long, "1 1 1 1;0- 2@e;1."},
		{"1 1 1 1;0~ 2@e;1*", 3, long, "1 1 1 1;0~ 2@e;1."},
		{"1 1 1 1;0. 2@e;1+", 2, long, "1 1 1 1;0. 2@e;1."},
		// The operator has withdrawn the addition: another place has its round.
		{"1;1= 1 1 2@d;1+", 2, long, "1;1= 1 1 2@d;1."},
		{"1;1= 1 1 2@d;1+", 3, 2 * time.Second, "1;1= 1 1 2@d;1+"},
		{"1 1 1;1= 2@d;1+", 2, long, "1 1 1;1= 2@d;1."},
		// It comes too late for what is entering.
		{"1;1= 1 1 2@d;1*", 2, 0, "1;1= 1 1 2@d;1="},
		{"1 1 1 1;0- 2@e;1*", 3, 0, "1 1 1 1;0- 2@e;1="},
		{"1 1 1;1= 2@d;2+", 3, long, "1 1 1;1= 2@d;2*"},
		{"1 1 1;1= 2@d;1=", 3, long, "1 1 1;1= 2@d;1="},
		// A process has made its decision known too late, when a later master counted already.
		{"1 1 1 1;1. 2@e;1=", 3, 0, "1 1 1 1;2= 2@e;1="},
		{"1 1 1 1;1* 2@e;2=", 3, 0, "1 1 1 1;2= 2@e;2="},
		{"1 1 1 1;1. 2@e;1=", 2, 0, "1 1 1 1;1. 2@e;1="},
		// Only the last master can go.
		{"1 1 1 1;0- 2@e;1=", 5, long, "1 1 1 1;1= 2@e;1="},
	} {
		if got := resized(row.members, row.exact, row.kept); got != row.want {
			t.Errorf("%s on %d masters for %v: %s, want %s", row.members, row.exact, row.kept, got, row.want)
		}
	}
}

// A master that forgot a moment ago has also forgotten TTLs and tokens, and helps to decide only after
// its quarantine.
func TestAMasterThatForgotDoesNotHelpToDecideTheNumber(t *testing.T) {
	for members, want := range map[string]string{"1 1 1 2@d;1*": "1 1 1 2@d;1=", "1 1 1 1;0~": "1 1 1 1;0."} {
		r := changingRoster(members, 4, worldBegan)
		for _, i := range []int{1, 2} {
			m := r.views[Place{Master: i}].marker
			m.Since, m.Quarantine = 1, 8*time.Second
			r.Checked(Place{Master: i}, m.String(), false, worldBegan, worldBegan)
		}
		for _, row := range []struct {
			after time.Duration
			want  string
		}{{8 * time.Second, members}, {9 * time.Second, want}} {
			now := worldBegan.Add(row.after)
			for i := range r.joined {
				r.Asked(Place{Master: i}, now, 0)
			}
			if row.after == 8*time.Second {
				if waits := r.change(now).Waits; waits != "lock masters that have forgotten must be out of quarantine" {
					t.Errorf("%s waits for %q", members, waits)
				}
			}
			if r.resize(now); strings.Join(r.joined, " ") != row.want {
				t.Errorf("%s after %v: %v, want %s", members, row.after, r.joined, row.want)
			}
		}
	}
}

// A process whose clock is fast must not take the quarantine of such a master for over too early.
func TestAQuarantineBeforeADecisionCountsByTheSlowestClock(t *testing.T) {
	for drift, want := range map[float64]time.Duration{0: 8 * time.Second, 0.01: 8160 * time.Millisecond, 0.1: 9600 * time.Millisecond} {
		r := changingRoster("1 1 1;0~", 3, worldBegan)
		r.limits.ClockDrift = drift
		m := r.views[Place{}].marker
		m.Since, m.Quarantine = 1, 8*time.Second
		r.Checked(Place{}, m.String(), false, worldBegan, worldBegan)
		for after, kept := range map[time.Duration]int{want - 1: 2, want: 3} {
			r.views[Place{}].asked = worldBegan.Add(after)
			for i := range 2 {
				r.views[Place{Master: 1 + i}].asked = worldBegan.Add(after)
			}
			if got := r.keepsAll(worldBegan.Add(after)); got != kept {
				t.Errorf("clocks may run apart by %v, after %v: %d masters, want %d", drift, after, got, kept)
			}
		}
	}
}

// The process that decides must have read all that was granted by the number before.
func TestNobodyVotesJustBeforeTheNumberOfMastersChanges(t *testing.T) {
	for members, want := range map[string]State{
		"1 1 1 2@d;1+": Voting, "1 1 1 2@d;1*": Starting, "1 1 1 2@d;1=": Voting,
		"1 1 1 1;0-": Voting, "1 1 1 1;0~": Starting, "1 1 1 1;0.": Voting,
	} {
		r := changingRoster(members, 4, worldBegan)
		if got := r.judge(Place{}, r.views[Place{}]); got.State != want {
			t.Errorf("%s: %v %s", members, got.State, got.Reason)
		}
	}
}

// Another process may grant by the next number already, and the masters that can be read need not know.
func TestWhatWasGrantedIsNotKnownJustBeforeTheNumberChanges(t *testing.T) {
	for record, want := range map[string]bool{
		"1 1 1 1 2@e;1+": true, "1 1 1 1 2@e;1*": false, "1 1 1 1 2@e;1=": true,
		"1 1 1 1;0-": true, "1 1 1 1;0~": false, "1 1 1 1;0.": true,
	} {
		places := len(strings.Fields(record))
		r, now := changingRoster(record, places, worldBegan), worldBegan.Add(time.Minute)
		for i := range places {
			r.Asked(Place{Master: i}, now, 7)
		}
		if got := r.tells(r.masters - 1); got != want {
			t.Errorf("%s: the longest TTL is known: %v", record, got)
		}
		if got := r.tokenLearned(Place{}, Emptied, worldBegan, now) == 7; got != want {
			t.Errorf("%s: the last token is known: %v", record, got)
		}
	}
}

// Another process may have decided the change, and granted on a quorum of the next number. Of that
// quorum, one master may have forgotten together with the one that is told now.
func TestWhileTheNumberChangesAQuorumTells(t *testing.T) {
	for record, want := range map[string]int{
		"1 1": 1, "1 1 2@c;1+": 1, "1 1 1": 2, "1 1 1 2@d;1+": 2, "1 1 1;0-": 2,
		"1 1 1 1": 2, "1 1 1 1 2@e;1+": 3, "1 1 1 1;0-": 3, "1 1 1 1 2@e;1=": 3,
		"1 1 1 1 1 2@f;1+": 3, "1 1 1 1 1 1": 3, "1 1 1 1 1 1;0-": 4,
	} {
		r := changingRoster(record, len(strings.Fields(record)), worldBegan)
		for told := range r.masters {
			if got := r.tells(told); got != (told >= want) {
				t.Errorf("%s: %d other masters know every TTL: %v", record, told, got)
			}
		}
	}
}

// Otherwise any N-Q+1 masters of the new number might not know them.
func TestAnotherNumberOfMastersTakesOverTTLsAndTokens(t *testing.T) {
	for members, want := range map[string]bool{"1 1 1 2@d;1=": true, "1 1 1 9@x/r": false} {
		r := changingRoster(members, 2, worldBegan)
		m, ok := r.mend(Place{Master: 2}, worldBegan.Add(time.Second))
		if !ok || m.Kind != EditAll || m.Raise != want || m.Marker.Before != time.Minute || m.Marker.Token != 7 {
			t.Errorf("%s: %v %+v", members, ok, m)
		}
	}
}

// wishes returns the members after a process that wants so many masters has looked once. The first
// masters have recorded exactly these members. Those after the members are new servers.
func wishes(members string, wanted, exact int, meets func(r *Roster)) (joined, waits string) {
	r := changingRoster(members, exact, worldBegan)
	for i := len(r.servers); i < wanted; i++ {
		r.SetServer(i, Server{Name: string(rune('a' + i))})
		r.Connected(Place{Master: i}, "r"+r.names(i), "", Replication{}, worldBegan)
		r.Checked(Place{Master: i}, "", false, worldBegan, worldBegan)
	}
	meets(r)
	if err := r.Want(wanted); err != nil {
		return strings.Join(r.joined, " "), err.Error()
	}
	r.pursue(worldBegan)
	return strings.Join(r.joined, " "), r.change(worldBegan).Waits
}

func TestAnotherNumberOfMastersIsProposedWhenAllHaveRecordedTheOneBefore(t *testing.T) {
	good := func(*Roster) {}
	for _, row := range []struct {
		members       string
		wanted, exact int
		meets         func(*Roster)
		want, waits   string
	}{
		{"1 1 1 1", 5, 4, good, "1 1 1 1 10@e/re;1+", "on record at 0 of 4 lock masters, 3 needed"},
		{"1 1 1 1", 6, 4, good, "1 1 1 1 10@e/re;1+", "on record at 0 of 4 lock masters, 3 needed"},
		{"1 1 2@c;1= 1;2.", 4, 4, good, "1 1 2@c;1= 10@d/rd;3+", "on record at 0 of 3 lock masters, 2 needed"},
		{"1 1 1 1", 3, 4, good, "1 1 1 1;0-", "on record at 0 of 4 lock masters, 3 needed"},
		{"1 1 1 1", 2, 4, good, "1 1 1 1;0-", "on record at 0 of 4 lock masters, 3 needed"},
		{"1 1 1 1", 4, 4, good, "1 1 1 1", ""},
		{"1 1 1 2@d;1=", 5, 3, good, "1 1 1 2@d;1=", "d cannot record another number of masters now, and all of them must"},
		{"1 1 1 2@d;1=", 3, 3, good, "1 1 1 2@d;1=", "d cannot record another number of masters now, and all of them must"},
		{"1 1 1 1", 5, 4, func(r *Roster) { r.Disconnected(Place{Master: 1}, NotConnected, worldBegan) }, "1 1 1 1", "b cannot record another number of masters now, and all of them must"},
		{"1 1 1 1", 5, 4, func(r *Roster) { r.Disconnected(Place{Master: 4}, NotConnected, worldBegan) }, "1 1 1 1", "e is to be added and is not reached"},
		{"1 1 1 1", 5, 4, func(r *Roster) {
			r.Connected(Place{Master: 4}, "rb", "", Replication{}, worldBegan)
			r.Checked(Place{Master: 4}, "", false, worldBegan, worldBegan)
		}, "1 1 1 1", "e is to be added: it is the same server as b"},
		{"1 1 1 1", 5, 4, func(r *Roster) { r.Replicates(Place{Master: 4}, Replication{Replica: true}, worldBegan) }, "1 1 1 1", "e is to be added: " + IsReplica},
		{"1 1 1 1", 5, 4, func(r *Roster) {
			r.Connected(Place{Master: 4}, "re", "it is a Sentinel", Replication{}, worldBegan)
			r.Checked(Place{Master: 4}, "", false, worldBegan, worldBegan)
		}, "1 1 1 1", "e is to be added: it is a Sentinel"},
		{"1 1 1 1", 5, 4, func(r *Roster) { r.Checked(Place{Master: 4}, "hello", false, worldBegan, worldBegan) }, "1 1 1 1", "e is to be added: " + marker.Unreadable("hello")},
		// This process stood still, and has not read them since.
		{"1 1 1 1", 5, 4, func(r *Roster) { r.views[Place{Master: 4}].asked = worldBegan.Add(-2 * recently) }, "1 1 1 1", "e is to be added and is not reached"},
		{"1 1 1 1", 5, 4, func(r *Roster) { r.views[Place{Master: 1}].asked = worldBegan.Add(-2 * recently) }, "1 1 1 1", "b cannot record another number of masters now, and all of them must"},
		{"1 1 1 1", 5, 4, func(r *Roster) { // it came back with its data, which may be old
			text := r.views[Place{Master: 1}].text
			r.Connected(Place{Master: 1}, "another", "", Replication{}, worldBegan)
			r.Checked(Place{Master: 1}, text, false, worldBegan, worldBegan)
		}, "1 1 1 1", "b cannot record another number of masters now, and all of them must"},
		{"1", 2, 1, good, "1", "the number of lock masters cannot change from or to one, because a single one cannot learn what it forgot"},
		{"1 1 1 1", 64, 4, good, "1 1 1 1 10@e/re;1+", "on record at 0 of 4 lock masters, 3 needed"},
		{"1 1 1 1", 1, 4, good, "1 1 1 1", "the number of lock masters cannot change from or to one, because a single one cannot learn what it forgot"},
		{"1 1 1 1", 65, 4, good, "1 1 1 1", "there can be 64 lock masters at most"},
		// What was proposed is withdrawn, also if it is another server than the one on the list.
		{"1 1 1 2@d/rd;1+", 3, 4, good, "1;1= 1 1 2@d/rd;1+", "on record at 0 of 3 lock masters, 2 needed"},
		{"1 1 1 2@x/rx;1+", 4, 4, good, "1;1= 1 1 2@x/rx;1+", "on record at 0 of 3 lock masters, 2 needed"},
		{"1 1 1 2@d/rd;1+", 4, 4, good, "1 1 1 2@d/rd;1+", "d must vote first"},
	} {
		if joined, waits := wishes(row.members, row.wanted, row.exact, row.meets); joined != row.want || waits != row.waits {
			t.Errorf("%s, %d wanted: %s, %q", row.members, row.wanted, joined, waits)
		}
	}
}

// Otherwise operators who contradict each other would stop the votes again and again.
func TestAWithdrawnAdditionIsNotAskedForAgain(t *testing.T) {
	for _, row := range []struct {
		member        string
		wanted, after int
	}{
		{"2@d/rd", 4, 0},
		// This process itself has withdrawn it: it wants fewer masters, or another server.
		{"2@d/rd", 2, 2},
		{"2@x/rx", 4, 4},
	} {
		r := changingRoster("1 1 1 "+row.member+";1+", 4, worldBegan)
		if err := r.Want(row.wanted); err != nil {
			t.Fatal(err)
		}
		r.pursue(worldBegan)
		r.step(members.List{"1", "1", "1", row.member + ";1."}, worldBegan)
		if r.pursue(worldBegan); r.wanted != row.after {
			t.Errorf("%d masters were wanted, and the addition of %s was withdrawn: it wants %d", row.wanted, row.member, r.wanted)
		}
	}
}

// A set of another number may still be found.
func TestAWishDoesNotEndBeforeThereIsASet(t *testing.T) {
	r := New(serversNamed(3), false, 0)
	if err := r.Want(3); err != nil {
		t.Fatal(err)
	}
	if r.pursue(worldBegan); r.wanted != 3 {
		t.Errorf("it wants %d", r.wanted)
	}
}

// A reload with more masters connects to their servers before these are on record. A server that is to
// go is asked until it is off the record.
func TestWhichPlacesAreAsked(t *testing.T) {
	r := changingRoster("1 1 1 2@d;1+", 4, worldBegan)
	if !r.Asks(3) || r.Asks(4) {
		t.Errorf("a place on record is asked: %v, one that nobody wants: %v", r.Asks(3), r.Asks(4))
	}
	r.joined, r.wanted = members.List{"1", "1", "1", "2@d;1.", "1;0."}, 4
	if !r.Asks(3) || r.Asks(4) {
		t.Errorf("a place that is wanted is asked: %v, one that has gone: %v", r.Asks(3), r.Asks(4))
	}
	if r.set = ""; !r.Asks(4) {
		t.Error("a place is not asked though no set is known")
	}
	if r.moves(len(r.servers)) {
		t.Error("a place that is not on the list moves")
	}
}

// A change that can begin waits for nothing.
func TestAChangeThatCanBeginDoesNotWait(t *testing.T) {
	r := changingRoster("1 1 1 1", 4, worldBegan)
	if err := r.Want(3); err != nil {
		t.Fatal(err)
	}
	if waits := r.change(worldBegan).Waits; waits != "" {
		t.Errorf("it waits: %s", waits)
	}
}

// A master that forgets a second time is in quarantine from then on.
func TestAMasterThatForgotTwiceDoesNotHelpToDecideTheNumber(t *testing.T) {
	r := changingRoster("1 1 1;0~", 3, worldBegan)
	m := r.views[Place{}].marker
	m.Quarantine = 8 * time.Second
	for m.Since = range int64(3) {
		at := worldBegan.Add(time.Duration(m.Since) * 5 * time.Second)
		r.Checked(Place{}, m.String(), false, at, at)
	}
	now := worldBegan.Add(12 * time.Second)
	for i := range 3 {
		r.Asked(Place{Master: i}, now, 0)
	}
	if got := r.keepsAll(now); got != 2 {
		t.Errorf("%d masters help to decide", got)
	}
}

// Otherwise a proposed server that never votes would stay proposed when nobody wants it any more.
func TestAnAdditionThatTakesTooLongIsWithdrawnByAReload(t *testing.T) {
	lasts := worldLimits.AdditionLasts()
	for _, row := range []struct {
		members string
		keeps   bool
		wanted  int
		after   time.Duration
		want    string
	}{
		{"1 1 1 2@d/rd;1+", true, 0, lasts + 1, "1;1= 1 1 2@d/rd;1+"},
		{"1 1 1 2@d/rd;1+", true, 0, lasts, "1 1 1 2@d/rd;1+"}, // it may still go on elsewhere
		{"1 1 1 2@d/rd;1+", false, 0, lasts + 1, "1 1 1 2@d/rd;1+"},
		{"1 1 1 2@d/rd;1+", true, 4, lasts + 1, "1 1 1 2@d/rd;1+"},
		{"1 1 1 2@d/rd;1*", true, 0, lasts + 1, "1 1 1 2@d/rd;1*"}, // this step needs no wish
		{"1 1 1;1= 2@d/rd;1+", true, 0, lasts + 1, "1 1 1;1= 2@d/rd;1+"},
		{"1 1 1 1", true, 0, lasts + 1, "1 1 1 1"},
	} {
		r := changingRoster(row.members, 4, worldBegan)
		r.learned, r.wanted = worldBegan, row.wanted
		if row.keeps {
			r.Keep()
		}
		r.withdraw(worldBegan.Add(row.after))
		if got := strings.Join(r.joined, " "); got != row.want {
			t.Errorf("%s after %v, asked to keep: %v, to have %d: %s, want %s", row.members, row.after, row.keeps, row.wanted, got, row.want)
		}
	}
}

// A process follows the record, whatever its list is. Markers of another set count by their own record.
func TestTheRecordSaysHowManyMastersThereAre(t *testing.T) {
	for _, row := range []struct {
		list    int
		sets    string // by place: the set and its record, or - for none, or ? if it is not reached
		set     string
		masters int
	}{
		{3, "s:1,1,1 s:1,1,1 -", "s", 3},
		// A number that was never changed must be that of the list.
		{5, "s:1,1,1 s:1,1,1 s:1,1,1 - -", "", 5},
		{5, "s:1,1,1 s:1,1,1 ? ? ?", "", 5},
		{3, "s:1 - -", "", 3},
		{3, "z:1 s:1,1,1 ?", "s", 3},
		{5, "s:1,1,1 ? ? - -", "", 5},
		{3, "s:1,1,1,2@d;1=,3@e;2= s:1,1,1,2@d;1=,3@e;2= ?", "", 3},
		{3, "s:1,1,1,2@d;1=,3@e;2= s:1,1,1,2@d;1=,3@e;2= s:1,1,1", "s", 5},
		{5, "s:1,1,1,1;0.,1;0. s:1,1,1,1;0.,1;0. ? ? ?", "s", 3},
		// Two masters that were removed, and two of another set, are no quorum of the set.
		{5, "s:1,1,1,1;0.,1;0. ? ? s:1,1,1,1;0.,1;0. s:1,1,1,1;0.,1;0.", "", 5},
		{4, "s:1,1,1 s:1,1,1 t:1,1,1,1 t:1,1,1,1", "t", 4},
		{5, "s:1,1,1 s:1,1,1 s:1,1,1 t:1,1,1,1,1 t:1,1,1,1,1", "t", 5},
		{5, "s:1,1,1,2@d;1= s:1,1,1,2@d;1= s:1,1,1 t:1,1,1,1,1,1,1 t:1,1,1,1,1,1,1", "s", 4},
		// Records of one set that cannot come from each other.
		{4, "s:1,1 s:1,1 s:1,1,1,1 ?", "", 4},
	} {
		var servers []Server
		for i := range row.list {
			servers = append(servers, Server{Name: string(rune('a' + i))})
		}
		r := New(servers, false, 1)
		for i, word := range strings.Fields(row.sets) {
			p := Place{Master: i}
			if word == "?" {
				continue
			}
			text := ""
			if set, joined, ok := strings.Cut(word, ":"); ok {
				members := strings.Split(joined, ",")
				m := marker.Marker{Set: set, Member: i + 1, Members: max(len(members), i+1), Epoch: 9, Joined: members, Run: "r"}
				text = m.String()
			}
			r.Connected(p, "r"+servers[i].Name, "", Replication{}, worldBegan)
			r.Checked(p, text, false, worldBegan, worldBegan)
		}
		if r.adopt(worldBegan); r.set != row.set || r.masters != row.masters {
			t.Errorf("%d listed, %s: set %q of %d", row.list, row.sets, r.set, r.masters)
		}
	}
}

// While a master is about to count, it may count for other processes already.
func TestAMasterThatIsAboutToCountMustBeReadBeforeOthersAreTold(t *testing.T) {
	for members, want := range map[string]bool{"1 1 1 2@d;1+": true, "1 1 1 2@d;1*": false, "1 1 1 2@d;1=": false} {
		r := changingRoster(members, 4, worldBegan)
		now := worldBegan.Add(time.Hour)
		for _, i := range []int{1, 2} {
			r.Checked(Place{Master: i}, "", false, now, now)
		}
		for i := range 3 {
			r.Asked(Place{Master: i}, now.Add(time.Second), 0)
		}
		if got := r.knowsMembers(Place{Master: 1}, r.views[Place{Master: 1}], now.Add(time.Second)); got != want {
			t.Errorf("%s: %v", members, got)
		}
	}
}

func TestAVoteSaysOfHowManyMastersItIsOne(t *testing.T) {
	for members, want := range map[string]int{"1 1 1 2@d;1+": 3, "1 1 1 2@d;1=": 4} {
		r := changingRoster(members, 4, worldBegan)
		if got := r.judge(Place{}, r.views[Place{}]); got.Masters != want || r.Drain().Masters != want {
			t.Errorf("%s: %+v", members, got)
		}
	}
}

// A process that reaches only masters of other, smaller sets keeps its own set.
func TestASmallerSetOfOthersReplacesNone(t *testing.T) {
	for members, strangers := range map[string]int{"1": 1, "1 1": 2, "1 1 1": 2, "1 1 1 2@z;1+": 2, "1 1 1 1;0.": 2, "1 1;0.": 1} {
		r := changingRoster("1 1 1 1 1", 5, worldBegan)
		joined := strings.Fields(members)
		for i := range 5 {
			r.Disconnected(Place{Master: i}, NotConnected, worldBegan)
			if i < strangers {
				z := marker.Marker{Set: "z", Member: i + 1, Members: len(joined), Epoch: 9, Joined: joined, Run: "rz"}
				r.Connected(Place{Master: i}, z.Run, "", Replication{}, worldBegan)
				r.Checked(Place{Master: i}, z.String(), false, worldBegan, worldBegan)
			}
		}
		if r.adopt(worldBegan); r.set != "s" || r.masters != 5 {
			t.Errorf("%s: the set is %s of %d", members, r.set, r.masters)
		}
	}
}
