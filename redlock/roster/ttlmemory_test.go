package roster

import (
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/timing"
)

// A stream that has not read yet that the record has turned records nothing.
func TestMarkerCoversWhatStreamsHaveNotReadYet(t *testing.T) {
	m := marker.Marker{Longest: time.Second, Before: time.Minute, Turned: 10_000}
	for now, want := range map[time.Duration]time.Duration{
		9 * time.Second:                   time.Second, // the clock was set back
		10 * time.Second:                  time.Minute,
		10*time.Second + timing.TurnGrace: time.Second,
		100 * time.Second:                 time.Second,
		14999 * time.Millisecond:          time.Minute,
	} {
		if got := covers(m, now); got != want {
			t.Errorf("at %v it covers %v, want %v", now, got, want)
		}
	}
}

// The clock of the process that remembers it may be fast.
func TestALostTTLIsRememberedByTheSlowestClock(t *testing.T) {
	now := time.Now()
	for drift, want := range map[float64]time.Duration{0: 105 * time.Second, 0.01: 107 * time.Second, 0.1: 125 * time.Second} {
		var lost ttlMemory
		lost.lose(100*time.Second, now, Limits{ClockDrift: drift})
		if before, after := lost.granted(now.Add(want)), lost.granted(now.Add(want+1)); before != 100*time.Second || after != 0 {
			t.Errorf("clocks may run apart by %v: it remembers %v for %v, and %v after that", drift, before, want, after)
		}
	}
}

// A master that recorded a long TTL goes away, and another one forgets.
func TestRosterWhatWasOnRecordIsRemembered(t *testing.T) {
	now := time.Now()
	r := votingRoster(5, now)
	long := r.marker(Place{0, 0}, "s", 0, time.Now())
	long.Longest = 5 * time.Minute
	r.shows(Place{0, 0}, long.String())
	r.Step(Disconnected{Place{0, 0}, NotConnected}, now)
	r.shows(Place{1, 0}, "")
	for _, m := range r.Tick(now.Add(time.Minute), rosterLimits) {
		if m.Place == (Place{1, 0}) && m.Marker.Quarantine == 5*time.Minute {
			return
		}
	}
	t.Error("its quarantine does not last as long as the TTL")
}

// All masters forget while a process starts that has read one of them. It begins a new set.
func TestRosterWhatWasReadBeforeASetWasKnownIsRemembered(t *testing.T) {
	now := time.Now()
	long := votingRoster(3, now).marker(Place{0, 0}, "s", 0, now)
	long.Longest = 5 * time.Minute
	r := New(serversNamed(3), false, 0)
	r.limits = rosterLimits
	r.Step(Connected{Place: Place{0, 0}, Run: long.Run}, now)
	r.shows(Place{0, 0}, long.String())
	r.Step(Disconnected{Place{0, 0}, NotConnected}, now)
	for i := range 3 {
		r.Step(Connected{Place: Place{i, 0}, Run: "again"}, now)
		r.views[Place{i, 0}].run += r.names(i)
		r.shows(Place{i, 0}, "")
	}
	writes := r.Tick(now.Add(time.Minute), rosterLimits)
	if len(writes) != 1 || writes[0].Marker.Quarantine != 5*time.Minute {
		t.Errorf("the new set does not begin with a quarantine as long as the TTL: %+v", writes)
	}
}

// SWAPDB takes the marker of database 0 away, with the longest TTL. The one that comes instead was
// written at the same moment, and does not have it.
func TestRosterWhatDatabase0TellsIsLostBySWAPDB(t *testing.T) {
	now := time.Now()
	for name, lived := range map[string]bool{"it had read the TTL": true, "it has just started": false} {
		r := votingRoster(3, now)
		for i := range 2 {
			p := Place{i, 0}
			long := r.marker(p, "s", 0, now)
			long.Longest = 5 * time.Minute
			if lived {
				r.shows(p, long.String())
			}
		}
		for i := range 2 {
			other := r.marker(Place{i, 0}, "s", 0, now)
			other.DB, other.Before = 5, 0
			r.shows(Place{i, 0}, other.String())
		}
		want := map[bool]time.Duration{true: 5 * time.Minute, false: rosterLimits.MaxQuarantine}[lived]
		r.recalls = lived
		for i := range 3 {
			r.lookAgain(Place{i, 0})
		}
		swapped := 0
		for _, m := range r.Tick(now.Add(time.Minute), rosterLimits) {
			if m.Reason != isSwapped {
				continue
			}
			if swapped++; m.Marker.Quarantine != want {
				t.Errorf("%s: the quarantine of master %d is %v, want %v", name, m.Master+1, m.Marker.Quarantine, want)
			}
		}
		if swapped != 2 {
			t.Errorf("%s: %d masters are mended", name, swapped)
		}
	}
}

// Another marker takes the place of one that recorded a long TTL, and does not have it.
func TestRosterARecordThatIsReplacedIsRemembered(t *testing.T) {
	now := time.Now()
	for name, row := range map[string]struct {
		run    string // of the server
		change func(*marker.Marker)
		want   time.Duration
	}{
		"it turned, and all locks have ended":    {"a", func(*marker.Marker) {}, 0},
		"it was flushed and written anew":        {"a", func(m *marker.Marker) { m.Since = 1 }, 5 * time.Minute},
		"it is of another set":                   {"a", func(m *marker.Marker) { m.Set = "t" }, 5 * time.Minute},
		"it is of another run":                   {"a", func(m *marker.Marker) { m.Run = "z" }, 5 * time.Minute},
		"it was of a run that is lost":           {"another", func(m *marker.Marker) { m.Run = "another" }, 0},
		"it was lost and written in a new epoch": {"a", func(m *marker.Marker) { m.Since, m.Epoch = 1, 2 }, 5 * time.Minute},
	} {
		r := votingRoster(3, now)
		p := Place{0, 0}
		m := r.views[p].marker
		m.Longest = 5 * time.Minute
		r.Step(Connected{Place: p, Run: row.run}, now)
		r.shows(p, m.String())
		m.Longest = 0
		row.change(&m)
		r.shows(p, m.String())
		if got := r.granted(time.Now()); got != row.want {
			t.Errorf("%s: the longest TTL is %v, want %v", name, got, row.want)
		}
	}
}

// A quarantine of the cap is cut to what the others have on record, and not to a guess of theirs.
func TestRosterWhatACapIsCutTo(t *testing.T) {
	const guess = 10 * time.Minute
	for name, row := range map[string]struct {
		own, others []time.Duration // granted in the present turn, and before it, by master
		want        time.Duration
	}{
		"the longest TTL":                         {[]time.Duration{0, 5 * time.Minute, 0, 0, 0}, make([]time.Duration, 5), 5 * time.Minute},
		"what it granted since is remembered":     {[]time.Duration{5 * time.Minute, 0, 0, 0, 0}, make([]time.Duration, 5), 30 * time.Second},
		"what was granted before":                 {make([]time.Duration, 5), []time.Duration{0, 4 * time.Minute, 0, 0, 0}, 4 * time.Minute},
		"a guess":                                 {make([]time.Duration, 5), []time.Duration{0, guess, 0, 0, 0}, 30 * time.Second},
		"what was granted since a guess":          {[]time.Duration{0, 3 * time.Minute, 0, 0, 0}, []time.Duration{0, guess, 0, 0, 0}, 3 * time.Minute},
		"the longest TTL, and less since a guess": {[]time.Duration{0, 3 * time.Minute, 4 * time.Minute, 0, 0}, []time.Duration{0, guess, 0, 0, 0}, 4 * time.Minute},
	} {
		for range 20 { // the order in which records are read must not matter
			r := votingRoster(5, time.Now())
			for i := range 5 {
				m := r.views[Place{i, 0}].marker
				if m.Longest, m.Before = row.own[i], row.others[i]; i == 0 {
					m.Since, m.Quarantine = 1, guess
				}
				r.shows(Place{i, 0}, m.String())
			}
			r.Step(Noted{Place{}, Standing{State: Quarantined, Until: time.Now().Add(time.Minute)}}, time.Now())
			if got, want := r.plannedFor(0, time.Now().Add(time.Minute)), "0 here  "+row.want.String(); got != want {
				t.Fatalf("%s: it writes %q, want %q", name, got, want)
			}
		}
	}
}

// What a master forgot while nobody could write to it has ended. Its marker tells the next one of longer TTLs all the same.
func TestRosterALateMarkerHasTheLongestTTLOnRecord(t *testing.T) {
	now := time.Now()
	r := votingRoster(3, now)
	for i := range 3 {
		m := r.views[Place{i, 0}].marker
		m.Longest = 5 * time.Minute
		r.shows(Place{i, 0}, m.String())
	}
	later := now.Add(2 * rosterLimits.MaxQuarantine)
	r.checked(Place{0, 0}, "", false, now, now)
	r.keepsAsking(Place{0, 0}, later)
	for _, w := range r.Tick(later, rosterLimits) {
		if w.Master == 0 && (w.Marker.Quarantine != rosterLimits.RestartDelay || w.Marker.Before != 5*time.Minute) {
			t.Errorf("it writes %v", w.Marker)
		}
	}
}
