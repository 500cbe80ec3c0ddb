package redlock

import (
	"testing"
	"time"
)

// A script that deletes whatever it finds goes to the masters once. After a split vote another
// client may take the lock, and a second try would delete that lock.
func TestTimelineAScriptThatDeletesAnywaySparesALaterLock(t *testing.T) {
	for _, row := range []struct {
		name, holds string
		ends        time.Duration
	}{
		{"the lock ends", "A A - - -", 52 * time.Millisecond},
		{"the copies differ", "A B - - -", time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := timelineConfig()
			cfg.Retry.Count, cfg.Retry.Delay = 3, second
			onTimelineWith(t, cfg, "ok ok ok ok mute", func(t *testing.T, w *timeline) {
				w.put(row.holds, row.ends)
				ended := make(chan Outcome)
				go func() { ended <- w.eval(deleteAnyway) }()
				w.elapse(55 * time.Millisecond)
				w.put("C C C - C", time.Minute)
				if o := <-ended; o.Verdict != NoQuorum {
					t.Errorf("%v %q", o.Verdict, o.Reply)
				}
				w.elapse(10 * second)
				w.wantValues("C C C - C")
				if n := w.countHeard(0, "delete-anyway"); n != 1 {
					t.Errorf("a master executed it %d times", n)
				}
			})
		})
	}
}
