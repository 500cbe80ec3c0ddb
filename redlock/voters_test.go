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
	voters *voters
}

func (w *askingWriter) Write(line []byte) (int, error) {
	if !w.voters.mu.TryLock() {
		return 0, w.refuse(line)
	}
	w.voters.mu.Unlock()
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
	log, r := &askingWriter{}, certifiedRoster(5, now)
	r.news()
	var told []MasterState
	v := newVoters(r, nil, slog.New(slog.NewTextHandler(log, nil)))
	log.voters = v
	v.standing = func(s MasterStatus) {
		if !v.mu.TryLock() {
			t.Fatal("the Observer is told under the roster's lock")
		}
		v.mu.Unlock()
		v.do(func(r *roster) {
			if told = append(told, s.State); s.State == Away {
				r.note(place{1, 0}, standing{state: Quarantined, reason: "noted by who is told"}, now)
			}
			r.status(now)
		})
	}
	v.do(func(r *roster) { r.disconnected(place{0, 0}, "gone", now) })
	if want := []MasterState{Away, Quarantined}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	v.do(func(r *roster) {
		for i := range 5 { // the set gives way to another, and says so
			r.shows(place{i, 0}, r.another(i, func(*marker) {}))
		}
		r.plan(now, rosterLimits)
	})
	if text := log.String(); text == "" || bytes.Contains(log.Bytes(), []byte("UNDER THE LOCK")) {
		t.Errorf("logged under the roster's lock, or nothing: %q", text)
	}
}
