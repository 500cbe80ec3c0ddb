package redlock

import (
	"testing"
	"time"
)

// A stream that has not read yet that the record has turned puts nothing on it.
func TestMarkerCoversWhatStreamsHaveNotReadYet(t *testing.T) {
	m := marker{longest: time.Second, before: time.Minute, turned: 10_000}
	for now, want := range map[time.Duration]time.Duration{
		9 * time.Second:            time.Second, // the clock has been put back
		10 * time.Second:           time.Minute,
		10*time.Second + turnGrace: time.Second,
		100 * time.Second:          time.Second,
		14999 * time.Millisecond:   time.Minute,
	} {
		if got := m.covers(now); got != want {
			t.Errorf("at %v it covers %v, want %v", now, got, want)
		}
	}
}

// A master that had a long TTL on record goes away, and another one forgets.
func TestRosterWhatWasOnRecordIsRemembered(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(5, now)
	long := r.marker(place{0, 0}, "s", 0, time.Now())
	long.longest = 5 * time.Minute
	r.shows(place{0, 0}, long.String())
	r.disconnected(place{0, 0}, notConnected, now)
	r.shows(place{1, 0}, "")
	for _, m := range r.plan(now.Add(time.Minute), rosterLimits) {
		if m.place == (place{1, 0}) && m.write.quarantine == 5*time.Minute {
			return
		}
	}
	t.Error("its quarantine does not last as long as the TTL")
}
