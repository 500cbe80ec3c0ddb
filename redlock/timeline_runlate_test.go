package redlock

import (
	"context"
	"testing"
	"time"
)

// After a split vote another client may take the lock, and a second try would delete that lock. So a
// script that deletes whatever it finds is executed once. So is a command that nobody took for a
// deletion, once it has deleted something.
func TestTimelineADeletionSparesALaterLock(t *testing.T) {
	script := func(w *timeline) Outcome { return w.eval(deleteAnyway) }
	transaction := func(w *timeline) Outcome {
		return w.locker.Run(context.Background(), RunRequest{Keys: bytesOf([]string{key}), Transaction: [][][]byte{bytesOf([]string{"EVAL", deleteAnyway, "1", key})}})
	}
	command := func(w *timeline) Outcome {
		return w.locker.Run(context.Background(), RunRequest{Keys: bytesOf([]string{key}), Args: bytesOf([]string{"PEXPIRE", key, "0", "XX"})})
	}
	for _, row := range []struct {
		name, holds, later string
		ends               time.Duration
		run                func(w *timeline) Outcome
	}{
		{"the lock ends", "A A - - -", "C C C - C", 52 * time.Millisecond, script},
		{"the copies differ", "A B - - -", "C C C - C", time.Minute, script},
		{"a transaction", "A B - - -", "C C C - C", time.Minute, transaction},
		{"a command", "A B - - -", "C C C - C", time.Minute, command},
		{"a command beside acquires", "A B - - -", "C B X - X", time.Minute, command},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := timelineConfig()
			cfg.Retry.Count, cfg.Retry.Delay = 3, second
			onTimelineWith(t, cfg, "ok ok ok ok mute", func(t *testing.T, w *timeline) {
				w.put(row.holds, row.ends)
				ended := begin(w, func() Outcome { return row.run(w) })
				w.elapse(55 * time.Millisecond)
				w.put(row.later, time.Minute)
				if o := ended(); o.Verdict != NoQuorum {
					t.Errorf("%v %q", o.Verdict, o.Reply)
				}
				w.elapse(10 * second)
				if row.later == "C C C - C" {
					w.wantValues(row.later)
				}
				if n := w.countHeard(0, "delete-anyway"); n > 1 {
					t.Errorf("a master executed it %d times", n)
				}
			})
		})
	}
}
