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
func TestVotersTellWithTheRosterFree(t *testing.T) {
	now := time.Now()
	log, r := &askingWriter{}, newRoster(make([]rosterServer, 3), false, 0)
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
	v.do(func(r *roster) {
		r.connected(place{0, 0}, "a", "", replication{}, now)
		r.connected(place{1, 0}, "b", "", replication{}, now)
	})
	v.do(func(r *roster) { r.disconnected(place{0, 0}, "gone", now) })
	if want := []MasterState{Away, Quarantined}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	for _, set := range []string{"s", "another"} { // the set gives way to another, and says so
		v.do(func(r *roster) {
			for i := range 3 {
				p := place{i, 0}
				r.connected(p, "a", "", replication{}, now)
				m := marker{set: set, member: i + 1, members: 3, epoch: 1, joined: []string{"1", "1", "1"}, run: "a", quarantine: time.Second}
				r.see(p, m.String(), false, now, now)
			}
			r.plan(now, voteLimits{})
		})
	}
	if text := log.String(); text == "" || bytes.Contains(log.Bytes(), []byte("UNDER THE LOCK")) {
		t.Errorf("logged under the roster's lock, or nothing: %q", text)
	}
}
