package redlock

import (
	"testing"
	"time"
)

// A change of the masters overtakes requests. They are tried again.

// overtake has another process replace the last master. The Locker hears of it by its next question.
func (w *timeline) overtake() {
	w.t.Helper()
	other := w.others[0]
	if err := other.Reload(w.t.Context(), w.withMaster(other, len(w.masters)-1, "another")); err != nil {
		w.t.Fatal(err)
	}
	if epoch := w.locker.Status().Epoch; epoch != 1 {
		w.t.Fatalf("the Locker knows of epoch %d already", epoch)
	}
}

// An acquire is tried again when votes count again, although split votes are not.
func TestTimelineAnAcquireThatWasOvertakenIsTriedAgain(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.another(timelineConfig())
		w.settle()
		w.overtake()
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != Won {
			t.Errorf("%+v", o)
		}
		for i := range w.masters[:4] {
			if n := w.countHeard(i, "SET"); n != 2 {
				t.Errorf("master %d was asked %d times", i+1, n)
			}
		}
	})
}

// The repeated command asks for what is left of the TTL.
func TestTimelineAnExtensionThatIsRepeatedEndsWhenItWasAskedTo(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.another(timelineConfig())
		w.settle()
		w.mustAcquire(tokenA, 10*second)
		w.overtake()
		began := time.Now()
		if o := w.locker.Extend(t.Context(), ExtendRequest{Key: []byte(key), TTL: 20 * second}); o.Verdict != Won || time.Since(began) < timeout {
			t.Errorf("%+v after %v", o, time.Since(began))
		}
		for i, m := range w.masters[:4] {
			if n := w.countHeard(i, "PEXPIRE"); n != 2 {
				t.Errorf("master %d was asked %d times", i+1, n)
			}
			left := m.TTL(key) + time.Since(began)
			if left > 20*second+5*time.Millisecond || left < 20*second-5*time.Millisecond {
				t.Errorf("master %d keeps it for %v", i+1, left)
			}
		}
	})
}

// The first look of a DEL shows too little to decide, and most of its answers are late. The second
// look shows the same lock, and the DEL deletes it.
func TestTimelineADELThatWasOvertakenDeletesWhatItMet(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.another(timelineConfig())
		w.settle()
		w.put("A A A A A", time.Minute)
		w.overtake()
		w.play("ok mute mute mute mute")
		ended := begin(w, func() Outcome { return byDEL(w.locker) })
		w.elapse(timeout + time.Millisecond)
		w.hearAgain()
		if o := ended(); o.Verdict != Won || string(o.Value) != tokenA {
			t.Errorf("%+v", o)
		}
		w.elapse(0)
		for i, m := range w.masters[:4] {
			if v := m.Value(key); v != "" {
				t.Errorf("master %d has %q", i+1, v)
			}
		}
	})
}
