package redlock

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
)

// What people hear of the masters' states, and what they do not hear.

func TestTimelineTheFirstUseOfADatabaseIsNoNews(t *testing.T) {
	told := &standings{told: map[string][]string{}}
	cfg := timelineConfig()
	cfg.Observer = told
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		before := len(told.of("m1"))
		r := AcquireRequest{DB: 15, Key: []byte(key), Value: []byte(tokenA), TTL: 20 * second}
		if o := w.locker.Acquire(t.Context(), r); o.Verdict != Won {
			t.Errorf("the first lock of a database: %+v", o)
		}
		w.settle()
		if news := told.of("m1")[before:]; len(news) > 0 {
			t.Errorf("the first use of a database is told as %q", news)
		}
	})
}

// If there is no set for some time, the reason is logged once.
func TestTimelineWhyThereIsNoSetIsLoggedOnce(t *testing.T) {
	inWorld(t, 3, func(t *testing.T, w *timeline) {
		w.masters[2].Kill()
		var log lockedText
		cfg := timelineConfig()
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		w.locker, w.links = w.dial("p", cfg)
		w.sleep(time.Second)
		if text := log.String(); strings.Contains(text, "no set of lock masters") {
			t.Errorf("logged while the masters may just be being reached:\n%s", text)
		}
		w.sleep(time.Minute)
		const reason = `reason="a new set of lock masters begins only when all of them have been reached and none has a marker: m3 has not been reached"`
		if text := log.String(); strings.Count(text, "level=WARN msg=\"no lock can be decided yet") != 1 || !strings.Contains(text, reason) {
			t.Errorf("a set that cannot begin is not logged once:\n%s", text)
		}
	})
}

func TestTimelineAMasterThatHangsIsToldToBeAway(t *testing.T) {
	told := &standings{told: map[string][]string{}}
	cfg := timelineConfig()
	cfg.Observer = told
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		before := len(told.of("m5"))
		w.play("ok ok ok ok pause")
		w.elapse(roster.BeatPause + timeout + 2*roster.BeatLength)
		if news := told.of("m5")[before:]; len(news) != 1 || news[0] != roster.Silent || w.locker.Status().Masters[4].State != roster.Unreachable {
			t.Errorf("a master that hangs is told as %q", news)
		}
		w.masters[4].Resume()
		w.elapse(second)
		if state := w.locker.Status().Masters[4].State; state != roster.Voting {
			t.Errorf("it answers again and is %v", state)
		}
	})
}

// "Unreachable until" would say when it can be reached again, which nobody knows.
func TestTimelineASilentMasterShowsNoEndOfItsQuarantine(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.forget(0)
		w.settle()
		w.wantStandings(w.locker, "QCCCC")
		w.play("pause ok ok ok ok")
		var m roster.MasterStatus
		for end := time.Now().Add(roster.BeatPause + timeout + 2*roster.BeatLength); time.Now().Before(end); w.sleep(10 * time.Millisecond) {
			if m = w.locker.Status().Masters[0]; m.State == roster.Unreachable && !m.Until.IsZero() {
				t.Fatalf("%+v", m)
			}
		}
		if m.State != roster.Unreachable {
			t.Errorf("%+v", m)
		}
	})
}

// A master's status never shows an end that has passed, not even between the end of a
// quarantine and the check that notices it.
func TestTimelineAnEndOfAQuarantineIsNeverInThePast(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.forget(0, 1, 2)
		w.settle()
		w.wantStandings(w.locker, "QQQCC")
		for range 40 * 100 {
			w.sleep(10 * time.Millisecond)
			for _, m := range w.locker.Status().Masters {
				if m.State == roster.Quarantined && m.Until.Before(time.Now()) {
					t.Fatalf("%v at %v", m, time.Now())
				}
			}
			if o := w.locker.Get(t.Context(), 0, []byte(key)); o.Quarantined > 0 && o.Until.Before(time.Now()) {
				t.Fatalf("%+v at %v", o, time.Now())
			}
		}
		w.wantStandings(w.locker, "CCCCC")
	})
}
