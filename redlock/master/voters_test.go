package master

import (
	"bytes"
	"log/slog"
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/roster"
)

// An askingWriter asks for the state of the masters at each log line.
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

// The log and the Observer are called with the roster's lock released, in order. They may
// ask for the state of the masters.
func TestVotersTellWithTheRosterFree(t *testing.T) {
	now := time.Now()
	log, r := &askingWriter{}, roster.New(make([]roster.Server, 3), false, 0)
	var told []roster.State
	v := newVoters(r, nil, slog.New(slog.NewTextHandler(log, nil)))
	log.voters = v
	v.standing = func(s roster.MasterStatus) {
		if !v.mu.TryLock() {
			t.Fatal("the Observer is told under the roster's lock")
		}
		v.mu.Unlock()
		v.do(func(r *roster.Roster) {
			if told = append(told, s.State); s.State == roster.Unreachable {
				r.Step(roster.Noted{Place: roster.Place{Master: 1, DB: 0}, Standing: roster.Standing{State: roster.Quarantined, Reason: "noted by who is told"}}, now)
			}
			r.Status(now)
		})
	}
	v.do(func(r *roster.Roster) {
		r.Step(roster.Connected{Place: roster.Place{Master: 0, DB: 0}, Run: "a"}, now)
		r.Step(roster.Connected{Place: roster.Place{Master: 1, DB: 0}, Run: "b"}, now)
	})
	v.do(func(r *roster.Roster) {
		r.Step(roster.Disconnected{Place: roster.Place{Master: 0, DB: 0}, Reason: "gone"}, now)
	})
	if want := []roster.State{roster.Unreachable, roster.Quarantined}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	for _, set := range []string{"s", "another"} { // the set gives way to another, and a notice says so
		v.do(func(r *roster.Roster) {
			for i := range 3 {
				p := roster.Place{Master: i, DB: 0}
				r.Step(roster.Connected{Place: p, Run: "a"}, now)
				m := marker.Marker{Set: set, Member: i + 1, Members: 3, Epoch: 1, Joined: []string{"1", "1", "1"}, Run: "a", Quarantine: time.Second}
				r.Step(roster.Checked{Place: p, Text: m.String(), Asked: now}, now)
			}
			r.Tick(now, roster.Limits{})
		})
	}
	if text := log.String(); text == "" || bytes.Contains(log.Bytes(), []byte("UNDER THE LOCK")) {
		t.Errorf("logged under the roster's lock, or nothing: %q", text)
	}
}
