package redlock

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"
	"time"
)

// An askingWriter asks how the masters stand whenever something is logged.
type askingWriter struct {
	bytes.Buffer
	roster *roster
}

func (w *askingWriter) Write(line []byte) (int, error) {
	if !w.roster.mu.TryLock() {
		return 0, w.refuse(line)
	}
	w.roster.mu.Unlock()
	return w.Buffer.Write(line)
}

func (w *askingWriter) refuse(line []byte) error {
	w.WriteString("UNDER THE LOCK: " + string(line))
	return nil
}

// What is told of the masters is told with the roster's lock free, in order, and
// whoever is told may ask how they stand.
func TestRosterTellsWithItsLockFree(t *testing.T) {
	now := time.Now()
	r := certifiedRoster(5, now)
	log := &askingWriter{roster: r}
	r.log = slog.New(slog.NewTextHandler(log, nil))
	var told []MasterState
	r.tell = func(s MasterStatus) {
		if !r.mu.TryLock() {
			t.Fatal("the Observer is told under the roster's lock")
		}
		r.mu.Unlock()
		if told = append(told, s.State); s.State == Away {
			r.note(place{1, 0}, standing{state: Quarantined, reason: "noted by who is told"})
		}
		r.status()
	}
	r.disconnected(place{0, 0}, "gone")
	if want := []MasterState{Away, Quarantined}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	for i := range 5 { // the set gives way to another, and says so
		r.see(place{i, 0}, r.another(i, func(*marker) {}), false)
	}
	r.plan(now, rosterLimits)
	if text := log.String(); text == "" || bytes.Contains(log.Bytes(), []byte("UNDER THE LOCK")) {
		t.Errorf("logged under the roster's lock, or nothing: %q", text)
	}
}
