package roster

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/members"
)

// A join is taken back when the server that joined goes away, and by nothing else.
func TestRosterWhichLossTakesAJoinBack(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		run   string // of the server that joined
		lost  Place
		stays bool
	}{
		{"a", Place{0, 0}, false},
		{"a", Place{0, 3}, true},
		{"x", Place{0, 0}, true}, // by a reload: the server before it goes away
	} {
		r := votingRoster(3, now)
		r.Propose(Change{Master: 0, Name: "x", Run: row.run}, now)
		joined := r.joined.Who(0)
		r.Step(Disconnected{row.lost, NotConnected}, now)
		if stays := r.joined.Who(0) == joined; stays != row.stays {
			t.Errorf("run %s joined, and %v is lost: the join stays: %v", row.run, row.lost, stays)
		}
	}
}

// A server without a marker of its present run joins, unless somebody else must decide about it.
func TestRosterWhichServersJoin(t *testing.T) {
	now := time.Now()
	three := members.List{"1", "1", "1"}
	for name, row := range map[string]struct {
		met    bool         // this process knows the member before
		record members.List // on the others
		own    members.List // on the server; nil: it has no marker
		change func(*marker.Marker)
		others string // "" or what has happened to all others
		moves  bool
		joins  bool
	}{
		"an unknown one":                                {record: three, own: three, joins: true},
		"an unknown one without a marker":               {record: three, joins: true},
		"one of another set":                            {record: three, own: three, change: func(m *marker.Marker) { m.Set = "t" }},
		"one of another size":                           {record: three, own: members.List{"1", "1", "1", "1"}},
		"one of another number":                         {record: three, own: three, change: func(m *marker.Marker) { m.Member = 2 }},
		"the member, with what it had before it joined": {met: true, record: members.List{"2@a/a", "1", "1"}, own: three, joins: true},
		"one that was replaced":                         {met: true, record: members.List{"2@x/x", "1", "1"}, own: three},
		"one that was replaced by any server":           {met: true, record: members.List{"2@/x", "1", "1"}},
		"the member of a newer list":                    {record: members.List{"2@x/x", "1", "1"}, own: members.List{"2@x/x", "1", "1"}, joins: true},
		"one of all that restarted":                     {record: three, own: three, others: "restarted"},
		"one without its data of all that restarted":    {record: three, others: "restarted"},
		"a promoted one of all that restarted":          {record: three, own: three, others: "restarted", moves: true, joins: true},
		"a promoted one in the run that joined":         {met: true, record: members.List{"2@a/another", "1", "1"}, moves: true},
		"an unknown one in a place that moves":          {met: true, record: three, moves: true, joins: true},
		"one with old data of all that restarted":       {record: members.List{"2@a/x", "1", "1"}, own: three, others: "restarted", joins: true},
	} {
		r := votingRoster(3, now)
		if !row.met {
			clear(r.all)
		}
		r.servers[0].Moves = row.moves
		p := Place{0, 0}
		r.Step(Connected{Place: p, Run: "another"}, now)
		text := ""
		if row.own != nil {
			m := marker.Marker{Set: "s", Member: 1, Members: len(row.own), Epoch: 1, Joined: row.own, Run: "a"}
			if row.change != nil {
				row.change(&m)
			}
			text = m.String()
		}
		r.shows(p, text)
		for i := 1; i < 3; i++ {
			m := r.views[Place{i, 0}].marker
			m.Epoch, m.Joined = members.Read(row.record[0]).Epoch, row.record
			if row.others == "restarted" {
				r.Step(Connected{Place: Place{i, 0}, Run: m.Run + "2"}, now)
			}
			r.shows(Place{i, 0}, m.String())
		}
		before := r.epoch
		if r.Tick(now.Add(time.Minute), rosterLimits); (r.epoch > before) != row.joins {
			t.Errorf("%s: epoch %d after %d, joined %s", name, r.epoch, before, r.joined)
		}
	}
}

// After another set began, a server whose name was on record is no outdated one.
func TestRosterANamedMemberIsNotOutdatedByAnotherSet(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for i := range 3 {
		m := r.views[Place{i, 0}].marker
		m.Epoch, m.Joined = 2, members.List{"1", "1", "2@c/c"}
		r.shows(Place{i, 0}, m.String())
	}
	r.shows(Place{2, 0}, "")
	for i := range 2 {
		r.shows(Place{i, 0}, r.another(i, func(m *marker.Marker) { m.Epoch, m.Joined = 1, members.List{"1", "1", "1"} }))
	}
	if r.Tick(now, rosterLimits); r.set != "another" || r.isOutdated(2) {
		t.Errorf("set %s, outdated: %v", r.set, r.isOutdated(2))
	}
}

// A member that this process has met is restarted. One that it has not met may be new: it waits until others have it
// on record, and then for max_quarantine.
func TestRosterAServerThatMayBeNewIsTakenForNew(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		met, recorded bool
		record        string // the first one of its own marker; "": it has none
		writes        string
	}{
		{true, true, "", "0 lacking emptied 30s"},
		{true, false, "", "0 lacking emptied 30s"},
		{false, true, "", "0 all emptied 10m0s"},
		{false, false, "", ""},
		{false, true, "2@a/a", "0 all restarted 30s"}, // it had its marker as the member, in another run
	} {
		r := votingRoster(3, now)
		joined := members.List{"2@a/a", "1", "1"}
		for i := range 3 {
			m := r.views[Place{i, 0}].marker
			m.Epoch, m.Joined = 2, joined
			r.shows(Place{i, 0}, m.String())
		}
		if !row.met {
			r.of(0).met = ""
		}
		p, later := Place{0, 0}, now.Add(2*time.Hour)
		text := ""
		if row.record != "" {
			text = r.views[p].text
		}
		r.Step(Connected{Place: p, Run: "a2"}, later)
		r.checked(p, text, false, later, later)
		if !row.recorded { // it was, and one of the others has forgotten it
			m := r.views[Place{1, 0}].marker
			m.Epoch, m.Joined = 1, members.List{"1", "1", "1"}
			r.shows(Place{1, 0}, m.String())
		}
		for i := range 3 {
			r.keepsAsking(Place{i, 0}, later.Add(time.Minute))
		}
		if got := r.plannedFor(0, later.Add(time.Minute)); got != row.writes {
			t.Errorf("%+v: it writes %q", row, got)
		}
	}
}

// The server before a promoted one may live on. So others must have it on record even if they have forgotten.
func TestRosterWhoMustHaveAPromotionOnRecord(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		moves, foreign, stays bool
		want                  int
	}{{false, false, false, 1}, {true, false, false, 2}, {false, true, false, 1}, {false, false, true, 1}} {
		r := votingRoster(3, now)
		r.servers[0].Moves = row.moves
		for i := 1; i < 3; i++ {
			if i == 1 || !row.stays {
				r.shows(Place{i, 0}, "")
			}
		}
		if row.foreign {
			r.Step(Connected{Place: Place{1, 0}, Run: "b2"}, now)
			r.shows(Place{1, 0}, r.another(1, func(m *marker.Marker) { m.Run = "b2" }))
		}
		if _, got := r.heardOf(0); got != row.want {
			t.Errorf("%+v: %d must have it on record", row, got)
		}
	}
	one := New([]Server{{Name: "a", Moves: true}}, false, 0)
	if _, got := one.heardOf(0); got != 0 {
		t.Errorf("there is no other one, and %d must have it on record", got)
	}
}

// Those count that can record a join now: of this set, and read on this connection.
func TestRosterWhoCanHaveAJoinOnRecord(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	r.Propose(Change{Master: 0, Name: "x", Run: "rx"}, now)
	recorded := func(i int) {
		m := r.marker(Place{i, 0}, "s", 0, now)
		r.shows(Place{i, 0}, m.String())
	}
	for i := 1; i < 5; i++ {
		recorded(i)
	}
	if heard, needed := r.heardOf(0); heard != 4 || needed != 3 {
		t.Errorf("%d have it on record, and %d must", heard, needed)
	}
	r.Step(Disconnected{Place{1, 0}, NotConnected}, now)
	r.Step(Disconnected{Place{2, 0}, NotConnected}, now)
	r.shows(Place{3, 0}, r.another(3, func(*marker.Marker) {}))
	if heard, needed := r.heardOf(0); heard != 1 || needed != 1 {
		t.Errorf("two have gone and one is of another set: %d have it on record, and %d must", heard, needed)
	}
}

// A reload may bring in a server that is no master elsewhere.
func TestRosterWhichServerIsAcceptable(t *testing.T) {
	now := time.Now()
	own := func(change func(*marker.Marker)) string {
		m := marker.Marker{Set: "s", Member: 1, Members: 3, Epoch: 1, Joined: members.List{"1", "1", "1"}, Run: "a"}
		change(&m)
		return m.String()
	}
	for name, row := range map[string]struct {
		run, text string
		lost      bool
		ok        bool
	}{
		"empty":                       {"x", "", false, true},
		"of this place":               {"x", own(func(*marker.Marker) {}), false, true},
		"a master at another place":   {"b", "", false, false},
		"a master that was elsewhere": {"b", "", true, true},
		"the same by another name":    {"a", "", false, true},
		"another key":                 {"x", "hello", false, false},
		"of another set":              {"x", own(func(m *marker.Marker) { m.Set = "t" }), false, false},
		"of another number":           {"x", own(func(m *marker.Marker) { m.Member = 2 }), false, false},
		"of another size":             {"x", own(func(m *marker.Marker) { m.Members, m.Joined = 4, members.List{"1", "1", "1", "1"} }), false, false},
		"of another member":           {"x", own(func(m *marker.Marker) { m.Joined = members.List{"2@y/y", "1", "1"} }), false, false},
	} {
		r := votingRoster(3, now)
		if row.lost {
			r.Step(Disconnected{Place{1, 0}, NotConnected}, now)
			r.Step(Disconnected{Place{1, 3}, NotConnected}, now)
		}
		if err := r.acceptable(Change{Master: 0, Run: row.run, Marker: row.text}); (err == nil) != row.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := votingRoster(3, now)
	if _, err := r.Propose(Change{Master: 0, Name: "x", Run: "x", Marker: "hello"}, now); err == nil || r.epoch != 1 {
		t.Errorf("a server with another key is taken in epoch %d: %v", r.epoch, err)
	}
}

// A promoted server that had its marker and was flushed is the member still.
func TestRosterAMemberInTheRunThatJoinedDoesNotJoinAgain(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	r.servers[0].Moves = true
	for i := range 3 {
		m := r.views[Place{i, 0}].marker
		m.Epoch, m.Joined = 2, members.List{"2@a/a", "1", "1"}
		r.shows(Place{i, 0}, m.String())
	}
	r.shows(Place{0, 0}, "")
	if r.Tick(now.Add(time.Minute), rosterLimits); r.epoch != 2 {
		t.Errorf("it joins in epoch %d", r.epoch)
	}
}

// A server with a marker from before another one took its place is not met as that one.
func TestRosterTheServerBeforeIsNotMet(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for i := 1; i < 3; i++ {
		m := r.views[Place{i, 0}].marker
		m.Epoch, m.Joined = 2, members.List{"2@x/x", "1", "1"}
		r.shows(Place{i, 0}, m.String())
	}
	if r.lookAgain(Place{0, 0}); r.hasMet(0) || !r.hasMet(1) {
		t.Errorf("it is met as the one that took its place: %v", r.hasMet(0))
	}
}

// The operator's rule holds for as long as a list may be out of date, and not after a restart alone.
func TestRosterWhenTheOperatorIsToTellAll(t *testing.T) {
	now := time.Now()
	for listed, want := range map[time.Time]bool{now: true, now.Add(-time.Hour): false, {}: false} {
		r := votingRoster(3, now)
		r.listed, r.learned = listed, now
		if got := r.Status(now.Add(time.Minute)); got.NextChange.IsZero() || got.TellAll != want {
			t.Errorf("listed at %v: %v until %v", listed, got.TellAll, got.NextChange)
		}
	}
}

// Who may be replaced, and why not.
func TestRosterWhenAMasterIsReplaceable(t *testing.T) {
	now := time.Now()
	is := func(r *Roster, states ...State) {
		for i, st := range states {
			r.Step(Noted{Place{i, 0}, Standing{State: st}}, now)
		}
	}
	changed := func(before time.Duration, run string) func(r *Roster) { // the second one, by a server that joined in this run
		return func(r *Roster) {
			for i := range 3 {
				m := r.views[Place{i, 0}].marker
				m.Epoch, m.Joined = 2, members.List{"1", "2@b/" + run, "1"}
				r.shows(Place{i, 0}, m.String())
			}
			r.limits = rosterLimits
			r.learned = now.Add(-before)
		}
	}
	long := rosterLimits.Apart(rosterLimits.MaxQuarantine)
	for name, row := range map[string]struct {
		change func(r *Roster)
		place  int
		why    string // "": it may be replaced
	}{
		"all vote":                            {func(*Roster) {}, 2, ""},
		"no set":                              {func(r *Roster) { r.set = "" }, 2, "there is no set"},
		"a place that does not count":         {func(*Roster) {}, 4, "there are 3 lock masters on record"},
		"it is dead":                          {func(r *Roster) { is(r, Voting, Voting, Unreachable) }, 2, ""},
		"another one is dead":                 {func(r *Roster) { is(r, Voting, Unreachable, Voting) }, 2, "1 of the other masters vote now"},
		"another one is in quarantine":        {func(r *Roster) { is(r, Voting, Quarantined, Voting) }, 2, "b does not vote"},
		"another one lacks the last change":   {func(r *Roster) { r.epoch = 2 }, 2, "a does not vote"},
		"the last change was a moment ago":    {changed(long-1, "before"), 2, "less than max_quarantine ago"},
		"the last change was long enough ago": {changed(long, "before"), 2, ""},
		"the same place was just changed":     {changed(0, "before"), 1, ""},
		"another set was taken over":          {func(r *Roster) { r.limits, r.learned = rosterLimits, now }, 2, "less than max_quarantine ago"},
		"the server of the last change votes": {changed(0, "b"), 2, ""},
		"only that of an earlier one votes": {func(r *Roster) {
			changed(0, "b")(r)
			r.epoch = 3
			for i := range 3 {
				m := r.views[Place{i, 0}].marker
				m.Epoch, m.Joined = 3, members.List{"3@a/before", "2@b/b", "1"}
				r.shows(Place{i, 0}, m.String())
			}
		}, 2, "less than max_quarantine ago"},
		"the server of the last change is dead": {func(r *Roster) {
			changed(0, "b")(r)
			is(r, Voting, Unreachable, Voting)
		}, 2, "less than max_quarantine ago"},
	} {
		r := votingRoster(3, now)
		r.Step(Listed{3, Server{Name: "d"}}, time.Time{})
		row.change(r)
		switch _, err := r.Propose(Change{Master: row.place, Name: "x", Run: "x"}, now); {
		case (err == nil) != (row.why == ""):
			t.Errorf("%s: %v", name, err)
		case err != nil && !strings.Contains(err.Error(), row.why):
			t.Errorf("%s: %v, want %s", name, err, row.why)
		}
	}
}

// Two processes that make the same replacement make one.
func TestRosterTheSameReplacementIsMadeOnce(t *testing.T) {
	for _, row := range []struct {
		name, run string
		anew      bool
	}{
		{"x", "r1", false},
		{"x", "r2", false},
		{"y", "r1", false},
		{"y", "r2", true},
		{"y", "", true},
	} {
		now := time.Now()
		r := votingRoster(3, now)
		r.limits = rosterLimits
		r.Propose(Change{Master: 0, Name: "x", Run: "r1"}, now)
		if j, err := r.Propose(Change{Master: 0, Name: row.name, Run: row.run}, now); (err != nil) != row.anew || err == nil && j.Epoch != 2 {
			t.Errorf("%s in run %q: epoch %d, %v", row.name, row.run, j.Epoch, err)
		}
	}
}

// All databases of a new server get its marker, however long it had to wait for that.
func TestRosterANewServerThatHadToWaitIsMarkedEverywhere(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	r.Propose(Change{Master: 0, Name: "x", Run: "rx"}, now)
	r.Step(Listed{0, Server{Name: "x"}}, now)
	r.Step(Connected{Place: Place{0, 0}, Run: "rx"}, now)
	r.checked(Place{0, 0}, "", false, now, now)
	later := now.Add(2 * rosterLimits.MaxQuarantine)
	r.keepsAsking(Place{0, 0}, later)
	for i := 1; i < 3; i++ {
		r.shows(Place{i, 0}, r.marker(Place{i, 0}, "s", 0, now).String())
	}
	if got := r.plannedFor(0, later); got != "0 all emptied 10m0s" {
		t.Errorf("it writes %q", got)
	}
}
