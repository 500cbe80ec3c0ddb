package roster

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
)

// resizedRoster knows these members, of which all have recorded them, and votes with all of them.
func resizedRoster(record string, now time.Time) *Roster {
	joined := members.List(strings.Fields(record))
	var servers []Server
	for i := range joined {
		servers = append(servers, Server{Name: string(rune('a' + i))})
	}
	r := New(servers, false, 1)
	r.limits = worldLimits
	for i := range joined {
		m := marker.Marker{Set: "s", Member: i + 1, Members: len(joined), Epoch: 9, Joined: joined, Run: "r" + servers[i].Name, Longest: time.Second, Token: 7}
		p := Place{Master: i}
		r.Step(Connected{Place: p, Run: m.Run}, now)
		r.checked(p, m.String(), false, now, now)
		r.Step(Noted{p, Standing{State: Voting}}, now)
	}
	r.adopt(now)
	r.learned = now.Add(-time.Hour)
	return r
}

// away has masters go away.
func away(masters ...int) func(r *Roster, now time.Time) {
	return func(r *Roster, now time.Time) {
		for _, i := range masters {
			r.Step(Disconnected{Place{i, 0}, NotConnected}, now)
		}
	}
}

// One master is added behind the last, or the last one is removed. A server that others have made a master already is
// no change.
func TestTheNumberOfMastersChangesByOne(t *testing.T) {
	for _, row := range []struct {
		members string
		place   int
		name    string // "": it is removed
		change  func(r *Roster, now time.Time)
		want    string // the members, or the error
		masters int
	}{
		{"1 1 1", 3, "x", nil, "1 1 1 10+x/rx", 4},
		{"1 1 1 5-", 3, "x", nil, "1 1 1 10+x/rx", 4},
		{"1 1 1 5+x/ry", 3, "x", nil, "1 1 1 5+x/ry", 4},
		{"1 1 1 5+d/rd", 3, "x", nil, "1 1 1 10+x/rx", 4},
		{"1 1 1", 2, "x", nil, "1 1 10@x/rx", 3},
		{"1 1 1", 4, "x", nil, "there are 3 lock masters on record", 3},
		{"1 1 1 5+d/rd", 3, "", nil, "1 1 1 10-", 3},
		{"1 1 1 1", 3, "", nil, "1 1 1 10-", 3},
		{"1 1 1 5-", 3, "", nil, "1 1 1 5-", 3},
		{"1 1 1 1 1", 3, "", nil, "of the 5 lock masters on record only the last can be removed", 5},
		{"1 1 1", 2, "", nil, "and 3 must stay", 3},
		{"1 1 1 1 9- 9+f/rf", 5, "", nil, "of the 6 lock masters on record only the last can be removed", 6},
		{"1 1 1", 3, "x", func(r *Roster, now time.Time) { r.Step(Noted{Place{1, 0}, Standing{State: Unreachable}}, now) }, "2 of the other masters vote now, and a majority of 3 is needed", 3},
		{"1 1 1 1 1", 4, "", func(r *Roster, now time.Time) { r.Step(Noted{Place{1, 0}, Standing{State: Quarantined}}, now) }, "b does not vote", 5},
		// Of three masters, two must vote, also if the fourth is removed while one is away. So it is if five stay five.
		{"1 1 1 1", 3, "", away(1), "1 1 1 10-", 3},
		{"1 1 1 1 1", 0, "x", away(1), "10@x/rx 1 1 1 1", 5},
		{"1 1 1 1 1", 0, "x", away(1, 2), "2 of the other masters vote now, and a majority of 3 is needed", 5},
		{"1 1 1 1 1", 0, "x", func(r *Roster, _ time.Time) { delete(r.views, Place{1, 0}) }, "10@x/rx 1 1 1 1", 5}, // it was never reached
		{"1 1 1 1 1", 4, "", func(r *Roster, now time.Time) { r.learned = now }, "less than max_quarantine ago", 5},
	} {
		now := worldBegan
		r := resizedRoster(row.members, now)
		before := r.masters
		if row.change != nil {
			row.change(r, now)
		}
		var err error
		if row.name == "" {
			_, err = r.Propose(Change{Master: row.place}, now)
		} else {
			_, err = r.Propose(Change{Master: row.place, Name: row.name, Run: "r" + row.name}, now)
		}
		got := strings.Join(r.joined, " ")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, row.want) || r.masters != row.masters {
			t.Errorf("%s, place %d is %q: %s with %d masters", row.members, row.place, row.name, got, r.masters)
		}
		if change := err == nil && got != row.members; change != (r.epoch == 10) || change != r.learned.Equal(now) && row.change == nil {
			t.Errorf("%s, place %d is %q: epoch %d since %v", row.members, row.place, row.name, r.epoch, r.learned)
		}
		if r.recalls != (r.masters == before) {
			t.Errorf("%s, place %d is %q: the longest TTL is known: %v", row.members, row.place, row.name, r.recalls)
		}
	}
}

// A place that was removed gets no marker, whatever is found there.
func TestARemovedPlaceGetsNoMarker(t *testing.T) {
	now := worldBegan
	r := resizedRoster("1 1 1 5-", now)
	r.checked(Place{3, 0}, "", false, now, now)
	later := now.Add(5 * time.Second)
	for i := range 4 {
		r.keepsAsking(Place{i, 0}, later)
	}
	if got := r.plannedFor(3, later); got != "" || r.epoch != 9 {
		t.Errorf("it gets %q in epoch %d", got, r.epoch)
	}
}

// A server that was added and goes away stays on record: the number of masters is not taken back.
func TestAnAdditionIsNotTakenBack(t *testing.T) {
	now := worldBegan
	for _, members := range []string{"1 1 1", "1 1 1 5-"} {
		r := resizedRoster(members, now)
		r.Propose(Change{Master: 3, Name: "x", Run: "rx"}, now)
		r.Step(Connected{Place: Place{3, 0}, Run: "rx"}, now)
		r.Step(Disconnected{Place{3, 0}, NotConnected}, now)
		if got := strings.Join(r.joined, " "); got != "1 1 1 10+x/rx" || r.masters != 4 {
			t.Errorf("%s: %s with %d masters", members, got, r.masters)
		}
	}
}

// After a removal, each quorum of the list before has a master that tells, too: of four masters, one lock of the five
// may be on three that include the removed one.
func TestTheMastersOfTheListBeforeTell(t *testing.T) {
	for masters, want := range map[int]int{1: 0, 2: 1, 3: 2, 4: 3, 5: 3, 6: 4, 7: 4} {
		r := New(serversNamed(masters), false, 1)
		if got := r.othersThatTell(); got != want {
			t.Errorf("of %d, %d others tell, want %d", masters, got, want)
		}
	}
}

// A server that was added, and has no marker yet, tells nothing of longer TTLs.
func TestANewServerTellsNothing(t *testing.T) {
	now := worldBegan
	r := resizedRoster("1 1 1", now)
	r.Propose(Change{Master: 2, Name: "x", Run: "rx"}, now)
	r.Step(Listed{2, Server{Name: "x"}}, now)
	later := now.Add(time.Minute)
	r.Step(Connected{Place: Place{2, 0}, Run: "rx"}, later)
	for i := range 3 {
		text := ""
		if i < 2 {
			text = r.marker(Place{i, 0}, "s", 0, later).String()
		}
		r.checked(Place{i, 0}, text, false, later, later)
	}
	if got := r.readSince(Place{0, 0}, now); got != 1 {
		t.Errorf("%d tell, want the other one that has a marker", got)
	}
}

// The record of the token goes up with who the masters are: of a smaller number, others may be a quorum.
func TestOnlyMastersOnRecordAreAsked(t *testing.T) {
	r := resizedRoster("1 1 1 5-", worldBegan)
	if r.Asks(3) || !r.Asks(2) || r.Asks(4) {
		t.Errorf("a removed place is asked: %v, one on record: %v", r.Asks(3), r.Asks(2))
	}
	if r.set = ""; !r.Asks(4) {
		t.Error("a place is not asked though no set is known")
	}
	if r.moves(len(r.servers)) {
		t.Error("a place that is not on the list moves")
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
		{3, "s:1,1,1,2+d,3+e s:1,1,1,2+d,3+e ?", "", 3},
		{3, "s:1,1,1,2+d,3+e s:1,1,1,2+d,3+e s:1,1,1", "s", 5},
		{5, "s:1,1,1,4-,3- s:1,1,1,4-,3- ? ? ?", "s", 3},
		// Two masters that were removed, and two of another set, are no quorum of the set.
		{5, "s:1,1,1,4-,3- ? ? s:1,1,1,4-,3- s:1,1,1,4-,3-", "", 5},
		{4, "s:1,1,1 s:1,1,1 t:1,1,1,1 t:1,1,1,1", "t", 4},
		{5, "s:1,1,1 s:1,1,1 s:1,1,1 t:1,1,1,1,1 t:1,1,1,1,1", "t", 5},
		{5, "s:1,1,1,2+d s:1,1,1,2+d s:1,1,1 t:1,1,1,1,1,1,1 t:1,1,1,1,1,1,1", "s", 4},
		// All that count have forgotten, and one that was removed has not.
		{4, "- - - s:1,1,1,5-", "s", 3},
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
			r.Step(Connected{Place: p, Run: "r" + servers[i].Name}, worldBegan)
			r.checked(p, text, false, worldBegan, worldBegan)
		}
		if r.adopt(worldBegan); r.set != row.set || r.masters != row.masters {
			t.Errorf("%d listed, %s: set %q of %d", row.list, row.sets, r.set, r.masters)
		}
	}
}

func TestAVoteSaysOfHowManyMastersItIsOne(t *testing.T) {
	for members, want := range map[string]int{"1 1 1 5-": 3, "1 1 1 2+d": 4} {
		r := resizedRoster(members, worldBegan)
		if got := r.judge(Place{}, r.views[Place{}]); got.Masters != want || r.Ready().Masters != want {
			t.Errorf("%s: %+v", members, got)
		}
	}
}

// A process that reaches only masters of other, smaller sets keeps its own set.
func TestASmallerSetOfOthersReplacesNone(t *testing.T) {
	for members, strangers := range map[string]int{"1": 1, "1 1": 2, "1 1 1": 2, "1 1 1 2+z": 2, "1 1 1 4-": 2, "1 3-": 1} {
		r := resizedRoster("1 1 1 1 1", worldBegan)
		joined := strings.Fields(members)
		for i := range 5 {
			r.Step(Disconnected{Place{Master: i}, NotConnected}, worldBegan)
			if i < strangers {
				z := marker.Marker{Set: "z", Member: i + 1, Members: len(joined), Epoch: 9, Joined: joined, Run: "rz"}
				r.Step(Connected{Place: Place{Master: i}, Run: z.Run}, worldBegan)
				r.checked(Place{Master: i}, z.String(), false, worldBegan, worldBegan)
			}
		}
		if r.adopt(worldBegan); r.set != "s" || r.masters != 5 {
			t.Errorf("%s: the set is %s of %d", members, r.set, r.masters)
		}
	}
}
