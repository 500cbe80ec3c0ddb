package roster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// plannedFor returns the writes to a master, each as its database, its databases, its cause and the
// quarantine.
func (r *Roster) plannedFor(master int, now time.Time) string {
	var words []string
	for _, w := range r.Tick(now, rosterLimits) {
		if w.Master != master {
			continue
		}
		kind := [...]string{"here", "lacking", "all", "edit"}[w.Kind]
		words = append(words, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", w.DB, kind, w.Cause, w.Marker.Quarantine)))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// What one finding at the first master of three does to its votes and to its markers.
func TestRosterWhatAFindingDoes(t *testing.T) {
	zero, three := Place{0, 0}, Place{0, 3}
	with := func(p Place, change func(*marker.Marker)) func(*Roster) {
		return func(r *Roster) {
			m := r.views[p].marker
			change(&m)
			r.shows(p, m.String())
		}
	}
	joins := func(r *Roster) { // the first one joined in epoch 2
		for i := range 3 {
			with(Place{i, 0}, func(m *marker.Marker) { m.Epoch, m.Joined = 2, []string{"2@a/a", "1", "1"} })(r)
		}
	}
	longer := func(r *Roster) { with(Place{1, 0}, func(m *marker.Marker) { m.Longest = 5 * time.Minute })(r) }
	waits := func(change func(*marker.Marker)) func(*Roster) { // in a quarantine of the cap
		return func(r *Roster) {
			with(zero, func(m *marker.Marker) { m.Since, m.Quarantine = 1, rosterLimits.MaxQuarantine; change(m) })(r)
			r.Step(Noted{zero, Standing{State: Quarantined, Until: time.Now().Add(time.Minute)}}, time.Now())
		}
	}
	setBack := func(r *Roster, p Place) { // its clock is behind the marker's Since
		r.Step(Noted{p, Standing{State: Quarantined, Until: time.Now().Add(r.views[p].marker.Quarantine + time.Hour)}}, time.Now())
	}
	still := func(*marker.Marker) {}
	for name, row := range map[string]struct {
		at     Place
		finds  func(r *Roster)
		state  State
		writes string
	}{
		"nothing": {zero, func(*Roster) {}, Voting, ""},
		"no master": {zero, func(r *Roster) {
			r.Step(Connected{Place: zero, Run: "a", Problem: "it is a Sentinel"}, time.Now())
			r.shows(zero, "")
		}, Rejected, ""},
		"a replica": {zero, func(r *Roster) {
			r.Step(Connected{Place: zero, Run: "a", Replication: Replication{Replica: true}}, time.Now())
			r.shows(zero, "")
		}, Rejected, ""},
		"no marker":                  {zero, func(r *Roster) { r.checked(zero, "", true, time.Now().Add(time.Hour), time.Now()) }, Rejected, ""},
		"it may evict":               {zero, func(r *Roster) { r.Step(Evicts{0, "allkeys-lru"}, time.Now()); r.shows(zero, "") }, Rejected, ""},
		"it does not evict any more": {zero, func(r *Roster) { r.Step(Evicts{0, "allkeys-lru"}, time.Now()); r.Step(Evicts{0, ""}, time.Now()) }, Starting, "0 all emptied 30s"},
		"it does not evict any more, and its connection breaks": {zero, func(r *Roster) {
			m := r.views[zero].marker
			m.Since = 1 // it forgot once, long ago
			r.shows(zero, m.String())
			r.Step(Evicts{0, "allkeys-lru"}, time.Now())
			r.Step(Evicts{0, ""}, time.Now())
			r.Step(Connected{Place: zero, Run: "a"}, time.Now())
			r.shows(zero, m.String())
		}, Starting, "0 all emptied 30s"},
		"it does not evict any more, and its marker is read for the first time": {zero, func(r *Roster) {
			m := r.views[zero].marker
			m.Since = 1
			r.of(0).kept = marker.Marker{}
			r.Step(Connected{Place: zero, Run: "a"}, time.Now())
			r.Step(Evicts{0, "allkeys-lru"}, time.Now())
			r.Step(Evicts{0, ""}, time.Now())
			r.shows(zero, m.String())
		}, Starting, "0 all emptied 30s"},
		"it never evicted":              {zero, func(r *Roster) { r.Step(Evicts{0, ""}, time.Now()) }, Voting, ""},
		"another number":                {zero, with(zero, func(m *marker.Marker) { m.Member = 2 }), Rejected, ""},
		"another number, restarted":     {zero, with(zero, func(m *marker.Marker) { m.Member, m.Run = 2, "old" }), Rejected, ""},
		"another size, restarted":       {zero, with(zero, func(m *marker.Marker) { m.Members, m.Joined, m.Run = 4, []string{"1", "1", "1", "1"}, "old" }), Rejected, ""},
		"its first replica":             {zero, func(r *Roster) { r.Step(Replicates{zero, Replication{ID: "x"}}, time.Now()) }, Voting, "0 edit  0s"},
		"it was a replica":              {zero, func(r *Roster) { r.Step(Replicates{zero, Replication{ID: "x", Was: true}}, time.Now()) }, Starting, "0 all replaced 30s"},
		"another database of a replica": {three, func(r *Roster) { r.Step(Replicates{three, Replication{ID: "x", Was: true}}, time.Now()) }, Starting, "3 here replaced 30s"},
		"another database is flushed":   {three, func(r *Roster) { r.shows(three, "") }, Starting, "3 here emptied 30s"},
		"another database is of before": {three, with(three, func(m *marker.Marker) { m.Run = "old" }), Starting, "3 here restarted 30s"},
		"a leftover of another size": {three, with(three, func(m *marker.Marker) {
			m.Set, m.Members, m.Joined = "t", 7, slices.Repeat([]string{"1"}, 7)
		}), Rejected, "3 here emptied 30s"},
		"a leftover of another number":     {three, with(three, func(m *marker.Marker) { m.Set, m.Member = "t", 2 }), Rejected, ""},
		"a leftover from before it joined": {three, joins, Starting, "3 here emptied 30s"},
		"the same of another size": {three, func(r *Roster) {
			joins(r)
			with(three, func(m *marker.Marker) { m.Members, m.Joined = 4, []string{"1", "1", "1", "1"} })(r)
		}, Rejected, ""},
		"database 0 is of another set": {three, func(r *Roster) { with(zero, func(m *marker.Marker) { m.Set = "t" })(r); r.shows(three, "") }, Starting, ""},
		"another database comes back first": {three, func(r *Roster) {
			text := r.views[three].text
			r.Step(Connected{Place: three, Run: "a2"}, time.Now())
			r.shows(three, text)
		}, Starting, ""},
		"its clock was ahead": {zero, func(r *Roster) {
			with(zero, func(m *marker.Marker) { m.Since = 1000 })(r)
			setBack(r, zero)
		}, Voting, "0 all clock_jumped 30s"},
		"its clock was ahead, in a long quarantine": {zero, func(r *Roster) {
			with(zero, func(m *marker.Marker) { m.Since, m.Quarantine = 1000, time.Minute })(r)
			setBack(r, zero)
		}, Voting, "0 all clock_jumped 1m0s"},
		"its clock was ahead, and a longer TTL is known": {three, func(r *Roster) {
			longer(r)
			with(three, func(m *marker.Marker) { m.Since, m.Quarantine = 1000, time.Minute })(r)
			setBack(r, three)
		}, Voting, "3 here clock_jumped 5m0s"},
		"only another database is out of date": {three, func(r *Roster) {
			for i := range 3 {
				with(Place{i, 0}, func(m *marker.Marker) { m.Epoch = 2 })(r)
			}
		}, Starting, "3 edit  0s"},
		"all databases are out of date":    {three, with(Place{1, 0}, func(m *marker.Marker) { m.Epoch = 2 }), Starting, "0 edit  0s"},
		"the cap, and others tell":         {zero, waits(still), Voting, "0 here  30s"},
		"the same, and it is over":         {zero, func(r *Roster) { waits(still)(r); r.Step(Noted{zero, Standing{State: Voting}}, time.Now()) }, Voting, ""},
		"the same, with the cap on record": {zero, waits(func(m *marker.Marker) { m.Before = rosterLimits.MaxQuarantine }), Voting, "0 here  30s"},
		"the cap is the longest TTL": {zero, func(r *Roster) {
			with(Place{1, 0}, func(m *marker.Marker) { m.Longest = 10 * time.Minute })(r)
			waits(still)(r)
		}, Voting, ""},
		"the cap, and another one does not remember": {zero, func(r *Roster) {
			waits(still)(r)
			with(Place{1, 0}, func(m *marker.Marker) { m.Run = "old" })(r)
		}, Voting, ""},
		"another database has a long TTL on record": {three, with(three, func(m *marker.Marker) { m.Longest = 5 * time.Minute }), Voting, ""},
		"its clock is being watched": {zero, func(r *Roster) {
			r.Step(Noted{zero, Standing{State: Starting, Until: time.Now().Add(time.Hour)}}, time.Now())
		}, Voting, ""},
		"a long quarantine that is not the cap": {zero, waits(func(m *marker.Marker) { m.Quarantine = 5 * time.Minute }), Voting, ""},
		"the cap, and others were not asked since": {zero, func(r *Roster) {
			waits(still)(r)
			r.views[zero].since = time.Now().Add(2 * time.Hour)
		}, Voting, ""},
		"another set, restarted":                 {zero, with(zero, func(m *marker.Marker) { m.Set, m.Run = "t", "old" }), Rejected, ""},
		"database 0 is away, another is flushed": {three, func(r *Roster) { r.Step(Disconnected{zero, NotConnected}, time.Now()); r.shows(three, "") }, Starting, ""},
		"it does not evict any more, and another database was flushed": {zero, func(r *Roster) {
			r.Step(Evicts{0, "allkeys-lru"}, time.Now())
			r.Step(Evicts{0, ""}, time.Now())
			with(three, func(m *marker.Marker) { m.Since = 5 })(r)
		}, Starting, "0 all emptied 30s"},
		"the key of its marker held something else": {zero, func(r *Roster) {
			r.checked(zero, "", true, time.Now().Add(time.Hour), time.Now())
			r.shows(zero, "")
		}, Starting, "0 lacking emptied 30s"},
		"the cap, of one that joined": {zero, func(r *Roster) {
			joins(r)
			with(three, func(m *marker.Marker) { m.Epoch, m.Joined = 2, []string{"2@a/a", "1", "1"} })(r)
			waits(still)(r)
		}, Voting, ""},
		"a quarantine that is too short": {zero, func(r *Roster) {
			r.ttls = ttlMemory{5 * time.Minute, time.Now().Add(time.Hour)}
			with(zero, func(m *marker.Marker) { m.Since, m.Quarantine = 1, 30*time.Second })(r)
			r.Step(Noted{zero, Standing{State: Quarantined, Until: time.Now()}}, time.Now())
		}, Voting, "0 here  5m0s"},
		"a short one that is over": {zero, func(r *Roster) {
			r.ttls = ttlMemory{5 * time.Minute, time.Now().Add(time.Hour)}
			with(zero, func(m *marker.Marker) { m.Since, m.Quarantine = 1, 30*time.Second })(r)
		}, Voting, ""},
	} {
		r := votingRoster(3, time.Now())
		row.finds(r)
		if got := r.lookAgainAs(row.at); got != row.state {
			t.Errorf("%s: it is %v, want %v", name, got, row.state)
		}
		if got := r.plannedFor(0, time.Now().Add(time.Minute)); got != row.writes {
			t.Errorf("%s: it writes %q, want %q", name, got, row.writes)
		}
	}
}

// lookAgainAs judges a place by what was read last.
func (r *Roster) lookAgainAs(p Place) State { return r.judge(p, r.views[p]).State }

// What a server says again and again is no news.
func TestRosterWhatIsSaidAgainIsNoNews(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	is := Replication{ID: "x"}
	r.Step(Replicates{Place{0, 0}, is}, now)
	r.Step(Evicts{0, "allkeys-lru"}, now)
	r.Ready()
	later := now.Add(time.Minute)
	r.Step(Replicates{Place{0, 0}, is}, later)
	r.Step(Evicts{0, "allkeys-lru"}, later)
	if r.Ready().Changed || r.views[Place{0, 0}].since.Equal(later) {
		t.Error("it is taken for news")
	}
}

// A write whose answer does not come is planned again, and not before.
func TestRosterAWriteIsPlannedAgain(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	r.shows(Place{0, 0}, "")
	began := now.Add(time.Minute)
	for after, want := range []bool{true, false, false, false, true, false} {
		at := began.Add(time.Duration(after) * MarkAgain / 4)
		if got := r.plannedFor(0, at) != ""; got != want {
			t.Errorf("after %v it is planned: %v", at.Sub(began), got)
		}
	}
}

// What was seen to be forgotten is written down when all others were asked, or have had time to answer.
// A jump of a clock must be known to others soon.
func TestRosterHowLongOthersAreWaitedFor(t *testing.T) {
	now := time.Now()
	for _, row := range []struct {
		away  bool // one of the others is
		jumps bool
		after time.Duration
		want  string
	}{
		{true, false, 700 * time.Millisecond, ""},
		{true, false, time.Second, "0 lacking emptied 30s"},
		{true, true, 400 * time.Millisecond, ""},
		{true, true, 700 * time.Millisecond, "0 all clock_jumped 30s"},
		{false, false, time.Millisecond, "0 lacking emptied 30s"},
		// What it jumped over has not ended by itself, however long nobody could write that down.
		{false, true, 3 * time.Hour, "0 all clock_jumped 5m0s"},
	} {
		r := votingRoster(5, now)
		if row.away {
			r.Step(Disconnected{Place{4, 0}, NotConnected}, now)
		}
		if row.after > time.Hour {
			m := r.views[Place{1, 0}].marker
			m.Longest = 5 * time.Minute
			r.shows(Place{1, 0}, m.String())
		}
		if row.jumps {
			r.jumped(0, Jump{time.Hour, time.Hour}, now)
		} else {
			r.checked(Place{0, 0}, "", false, now, now)
		}
		if got := r.plannedFor(0, now.Add(row.after)); got != row.want {
			t.Errorf("jumps: %v, after %v it writes %q, want %q", row.jumps, row.after, got, row.want)
		}
	}
}

// What a batch finds besides the marker decides whether its vote counts.
func TestRosterWhatABatchFinds(t *testing.T) {
	now := time.Now()
	limits := rosterLimits
	for _, row := range []struct {
		reading Reading
		state   State
		until   time.Duration
	}{
		{Reading{Watched: limits.Watch()}, Voting, 0},
		{Reading{Witnessed: true}, Voting, 0},
		{Reading{Watched: limits.Watch() - time.Second}, Starting, time.Second},
		{Reading{Witnessed: true, Unsure: true}, Starting, 0},
		{Reading{Witnessed: true, Suspended: true}, Starting, 0},
		{Reading{Witnessed: true, Jumped: true}, Starting, 0},
	} {
		row.reading.Received = now
		st := Standing{State: Voting}.At(marker.Marker{}, row.reading, limits)
		if until := st.Until.Sub(now); st.State != row.state || row.until != 0 && until != row.until {
			t.Errorf("%+v: %v for %v", row.reading, st.State, until)
		}
	}
}

// The TTLs that another set granted are none of this one.
func TestRosterALostRecordOfAnotherSetDoesNotCount(t *testing.T) {
	now := time.Now()
	for _, set := range []string{"s", "t"} {
		r := votingRoster(3, now)
		m := r.views[Place{0, 0}].marker
		m.Set, m.Longest = set, 5*time.Minute
		r.shows(Place{0, 0}, m.String())
		r.Step(Disconnected{Place{0, 0}, NotConnected}, now)
		if remembered := r.granted(now) > 0; remembered != (set == "s") {
			t.Errorf("set %s: %v is remembered", set, r.granted(now))
		}
	}
}
