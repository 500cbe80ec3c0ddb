package events

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock"
)

// One error says that the quorum is lost and who is missing, one line that it
// is back; a process that only starts has lost nothing.
func TestQuorumLostIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	status := testStatus
	w := New(slog.New(slog.NewTextHandler(&log, nil)))
	look := func(now time.Time) { w.watch(status, now) }
	began := time.Now()
	looks := func(needed int, at time.Duration) {
		status.Needed = needed
		look(began.Add(at))
		look(began.Add(at))
	}
	looks(3, 0)
	if strings.Contains(log.String(), "quorum") {
		t.Errorf("what never was is lost:\n%s", log.String())
	}
	looks(2, time.Second)
	looks(3, 2*time.Second)
	looks(2, 3500*time.Millisecond)
	const missing = `missing="m2:1 is quarantined until 2026-11-21T05:10:00Z: it may have forgotten locks (deploy/INCIDENTS.md#quarantined); m3:1 is unreachable: it is not connected: connection refused (deploy/INCIDENTS.md#unreachable); m4:1 is rejected: it belongs\r\nto another set (deploy/INCIDENTS.md#rejected)"`
	var got []string
	for line := range strings.Lines(log.String()) {
		_, line, _ = strings.Cut(line, " level=")
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		`INFO msg="quorum reached: locks can be decided" voting=2 masters=5 needed=2 ` + missing,
		`ERROR msg="quorum lost: lock commands fail until more masters vote (deploy/INCIDENTS.md#quorumlost)" voting=2 masters=5 needed=3 ` + missing,
		`INFO msg="quorum regained: locks can be decided again" voting=2 masters=5 needed=2 ` + missing + ` after=1.5s`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// After a change of the masters no vote counts for a moment. That is no loss of the quorum.
// It is one if it lasts.
func TestAChangeOfTheMastersIsNoLossOfTheQuorum(t *testing.T) {
	var log bytes.Buffer
	status := redlock.Status{Needed: 1, Masters: []redlock.MasterStatus{{Name: "m1:1", State: redlock.Voting}}}
	w := New(slog.New(slog.NewTextHandler(&log, nil)))
	look := func(now time.Time) { w.watch(status, now) }
	began := time.Now()
	look(began)
	status.Masters = []redlock.MasterStatus{{Name: "m1:1", State: redlock.Starting}}
	status.Learned = began.Add(time.Second)
	look(began.Add(time.Second))
	look(began.Add(3 * time.Second))
	if strings.Contains(log.String(), "quorum lost") {
		t.Errorf("%s", log.String())
	}
	look(began.Add(5 * time.Second))
	if !strings.Contains(log.String(), "quorum lost") {
		t.Errorf("%s", log.String())
	}
}

// Masters that start together for another reason are a loss of the quorum.
func TestALossOfTheQuorumIsLoggedAtOnceWithoutAChangeOfTheMasters(t *testing.T) {
	var log bytes.Buffer
	status := redlock.Status{Needed: 1, Masters: []redlock.MasterStatus{{Name: "m1:1", State: redlock.Voting}}}
	w := New(slog.New(slog.NewTextHandler(&log, nil)))
	look := func(now time.Time) { w.watch(status, now) }
	began := time.Now()
	status.Learned = began.Add(-time.Minute)
	look(began)
	status.Masters = []redlock.MasterStatus{{Name: "m1:1", State: redlock.Starting}}
	look(began.Add(time.Second))
	if !strings.Contains(log.String(), "quorum lost") {
		t.Errorf("%s", log.String())
	}
}
