package roster

import (
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// forgottenAt makes a roster of three masters in which the first forgot at began. The others were
// asked at the given time after that. Their markers are changed before.
func forgottenAt(began time.Time, asked time.Duration, change func(*marker.Marker)) *Roster {
	r := New([]Server{{Name: "a"}, {Name: "b"}, {Name: "c"}}, false, 1)
	limits := Limits{MasterTimeout: time.Second, RestartDelay: 2 * time.Second, MaxQuarantine: time.Minute}
	for i := range 3 {
		p := Place{i, 0}
		m := marker.Marker{Set: "s", Member: i + 1, Members: 3, Epoch: 1, Joined: []string{"1", "1", "1"}, Run: "r", Token: 7}
		if r.Step(Connected{Place: p, Run: m.Run}, began); i > 0 {
			change(&m)
		}
		r.checked(p, m.String(), false, began, began)
		r.Tick(began, limits)
	}
	r.checked(Place{0, 0}, "", false, began, began)
	for i := 1; i < 3; i++ {
		r.Step(Asked{Place{i, 0}, began.Add(asked), 9}, began.Add(asked))
	}
	return r
}

// learnedAfter returns the token that would be written to the master that forgot.
func learnedAfter(asked time.Duration, change func(*marker.Marker)) int64 {
	r := forgottenAt(worldBegan, asked, change)
	return r.tokenLearned(Place{0, 0}, Emptied, worldBegan, worldBegan.Add(asked))
}

// A ballot that raises the longest TTL may be under way when a master that voted in it forgets. The
// other masters may not have that TTL on record yet.
func TestTheLongestTTLIsNotLearnedTooEarly(t *testing.T) {
	for asked, want := range map[time.Duration]bool{time.Second / 2: false, 2 * time.Second: true} {
		r := forgottenAt(worldBegan, asked, func(*marker.Marker) {})
		if _, known := r.covers(Place{0, 0}, Emptied, 0, worldBegan.Add(asked)); known != want {
			t.Errorf("%v after it forgot: %v", asked, known)
		}
	}
}

// A ballot that raises the token may be under way when a master that voted in it forgets. The
// other masters may not have the token on record yet.
func TestATokenIsNotLearnedTooEarly(t *testing.T) {
	asBefore := func(*marker.Marker) {}
	if token := learnedAfter(2*time.Second, asBefore); token != 9 {
		t.Errorf("from masters that remember: %d", token)
	}
	if token := learnedAfter(time.Second/2, asBefore); token < marker.FirstToken(worldBegan) {
		t.Errorf("while a ballot may be under way: %d", token)
	}
	if token := learnedAfter(2*time.Second, func(m *marker.Marker) { m.Run = "before" }); token < marker.FirstToken(worldBegan) {
		t.Errorf("from masters that have been restarted: %d", token)
	}
	if token := learnedAfter(2*time.Second, func(m *marker.Marker) { m.DB, m.Token = 5, 0 }); token < marker.FirstToken(worldBegan) {
		t.Errorf("from masters whose database 0 holds what another one held: %d", token)
	}
}

// The masters forget their set, and another process begins another. This process may have missed the
// last tokens of the former one. So it writes none that is lower than those with which records begin.
func TestATokenOfAFormerSetIsNotWrittenToAnother(t *testing.T) {
	for _, known := range []int64{0, 7, 1 << 50} {
		began := worldBegan
		r := New([]Server{{Name: "a"}, {Name: "b"}, {Name: "c"}}, false, 1)
		for _, set := range []string{"former", "another"} {
			for i := range 3 {
				p := Place{i, 0}
				m := marker.Marker{Set: set, Member: i + 1, Members: 3, Epoch: 1, Joined: []string{"1", "1", "1"}, Run: set}
				if set == "former" {
					m.Token = known
				}
				r.Step(Connected{Place: p, Run: m.Run}, began)
				r.checked(p, m.String(), false, began, began)
				r.Tick(began, scriptLimits)
			}
			began = began.Add(time.Minute)
		}
		want := known
		if known == 7 {
			want = marker.FirstToken(began.Add(-time.Minute))
		}
		if got := r.marker(Place{}, r.set, 0, began); got.Set != "another" || got.Token != want {
			t.Errorf("after the token %d the marker of another set is %+v, want the token %d", known, got, want)
		}
	}
}

// More than a thousand tokens a second may have been given, so the time in ms may be less than the last.
func TestATokenThatIsKnownIsNotLowered(t *testing.T) {
	r := votingRoster(3, worldBegan)
	r.token = 1 << 50
	if got := r.tokenLearned(Place{}, Emptied, time.Now().Add(2*time.Hour), worldBegan); got != 1<<50 {
		t.Errorf("it is %d", got)
	}
}

// Others tell a master that forgot the last token: so many that one of each quorum is among them, at least one, and not
// this master itself, whose marker may be a copy. No others tell a new server.
func TestWhoTellsTheLastToken(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		masters int
		change  func(r *Roster)
		tell    bool
	}{
		"two others":                 {3, func(*Roster) {}, true},
		"one other":                  {3, func(r *Roster) { r.Step(Disconnected{Place{2, 0}, NotConnected}, now) }, false},
		"there is no other":          {1, func(*Roster) {}, false},
		"two others of a new server": {3, func(r *Roster) { r.joined = r.joined.WithText(0, "2@x/a"); r.of(0).met = "1" }, false},
	} {
		r := votingRoster(row.masters, now)
		r.token = 7
		row.change(r)
		if got := r.tokenLearned(Place{}, Replaced, now, now); (got == 7) != row.tell {
			t.Errorf("%s: the token is %d", name, got)
		}
		if row.masters == 3 && row.tell {
			r.Step(Replicates{Place{}, Replication{ID: "x", Was: true}}, now)
			r.Step(Disconnected{Place{2, 0}, NotConnected}, now)
			for _, w := range r.Tick(now.Add(time.Minute), rosterLimits) {
				if w.Place == (Place{}) && w.Marker.Token < marker.FirstToken(now) {
					t.Errorf("a marker is written with the token %d, though too few tell", w.Marker.Token)
				}
			}
		}
	}
}
