package redlock

import (
	"fmt"
	"testing"
	"time"
)

// crowd starts many acquires of the key at once. It returns when all clients know that
// nobody can get it.
func (w *timeline) crowd() (took time.Duration) {
	w.t.Helper()
	began := time.Now()
	waiting := w.crew()
	for i := range 100 {
		waiting.Go(func() {
			if o, _ := w.acquire(fmt.Sprintf("client number %d's own token", i), second); o.Verdict != NoQuorum {
				w.t.Errorf("%v", o.Verdict)
			} else if o.Voting >= o.Needed || o.Asked != len(w.masters) {
				w.t.Errorf("%d of %d can vote, %d needed", o.Voting, o.Asked, o.Needed)
			}
		})
	}
	waiting.Wait()
	return time.Since(began)
}

// If it is known that nobody can vote, a crowd hears so in the time of one ballot.
func TestTimelineACrowdIsToldAtOnceThatNobodyCanVote(t *testing.T) {
	t.Run("a new set", func(t *testing.T) {
		cfg := timelineConfig()
		cfg.New = false
		onTimelineWith(t, cfg, "ok@20ms ok@20ms ok@20ms ok@20ms ok@20ms", func(t *testing.T, w *timeline) {
			if took := w.crowd(); took > 4*20*time.Millisecond {
				t.Errorf("it took %v", took)
			}
			if now, then := w.locker.Prospects(0, time.Now().Add(second)); now != 0 || then != 0 {
				t.Errorf("%d can vote, and %d in a second", now, then)
			}
			if _, then := w.locker.Prospects(0, time.Now().Add(time.Minute)); then != 5 {
				t.Errorf("%d can vote in a minute", then)
			}
		})
	})
	t.Run("a process that has just started", func(t *testing.T) {
		onTimeline(t, allWell, func(t *testing.T, w *timeline) {
			cfg := timelineConfig()
			cfg.New = false
			first := w.locker
			defer func() { w.others, w.locker = append(w.others, w.locker), first }()
			w.locker, _ = w.dial("p2", cfg)
			w.sleep(timeout)
			if took := w.crowd(); took > timeout/2 {
				t.Errorf("it took %v", took)
			}
			if now, then := w.locker.Prospects(0, time.Now().Add(2*second)); now != 0 || then != 5 {
				t.Errorf("%d can vote, and %d in two seconds", now, then)
			}
			w.sleep(2 * second)
			if now, _ := w.locker.Prospects(0, time.Now()); now != 5 {
				t.Errorf("%d can vote", now)
			}
		})
	})
	t.Run("all are down", func(t *testing.T) {
		cfg := timelineConfig()
		onTimelineWith(t, cfg, allWell, func(t *testing.T, w *timeline) {
			w.play("kill kill kill kill kill")
			first := w.locker
			defer func() { w.others, w.locker = append(w.others, w.locker), first }()
			w.locker, _ = w.dial("p2", cfg)
			w.sleep(timeout)
			if took := w.crowd(); took > timeout/2 {
				t.Errorf("it took %v", took)
			}
		})
	})
	t.Run("a majority hangs", func(t *testing.T) {
		onTimeline(t, allWell, func(t *testing.T, w *timeline) {
			w.play("ok ok pause pause pause")
			if took := w.crowd(); took > 2*timeout {
				t.Errorf("it took %v", took)
			}
		})
	})
}
