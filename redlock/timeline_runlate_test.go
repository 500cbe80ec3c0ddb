package redlock

import (
	"strings"
	"testing"
	"time"
)

// A run that deletes is tried again when votes are split, at once and after a wait for the
// Mender. Meanwhile the lock that it deleted may end, and another client may take it.
func TestTimelineARunSparesALockThatCameAfterItsFirstTry(t *testing.T) {
	for _, row := range []struct {
		name  string
		tries int
		holds string
		ends  time.Duration
		taken func(w *timeline)
	}{
		{"before the second try", 1, "A A - - -", 52 * time.Millisecond, func(w *timeline) {
			w.elapse(55 * time.Millisecond)
		}},
		{"after the Mender has looked", 0, "A B - - -", time.Minute, func(w *timeline) {
			for w.countHeard(0, "EXEC") < 3 {
				w.elapse(200 * time.Microsecond)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := timelineConfig()
			cfg.Retry.Count, cfg.Retry.Delay = row.tries, second
			onTimelineWith(t, cfg, "ok ok ok ok mute", func(t *testing.T, w *timeline) {
				w.put(row.holds, row.ends)
				ended := make(chan Outcome)
				go func() { ended <- w.eval(deleteAnyway) }()
				row.taken(w)
				w.put("C C C - C", time.Minute)
				if o := <-ended; o.Verdict != NoQuorum {
					t.Errorf("%v %q", o.Verdict, o.Reply)
				}
				w.elapse(0)
				w.wantValues("C C C - C")
			})
		})
	}
}

// Masters that answered the first try late vote in a later one, if they still have what they
// had.
func TestTimelineARunDeletesWhatItsFirstTryMet(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry.Count, cfg.Retry.Delay = 5, second
	onTimelineWith(t, cfg, "ok ok ok@70ms ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A - -", time.Minute)
		time.AfterFunc(75*time.Millisecond, func() { w.play("ok ok ok ok ok") })
		wantReply(t, w.eval(deleteAnyway), ":1\r\n")
		w.elapse(0)
		w.wantValues("- - - - -")
		if heard := w.heard(4); !strings.Contains(heard, "watched.lua") {
			t.Errorf("master 5 heard %s", heard)
		}
	})
}
