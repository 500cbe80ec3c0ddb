package redlock

import (
	"testing"
	"time"
)

// One ballot without a quorum says nothing about the next: the masters that were slow may be on time
// then. Three masters answer at one moment, and were silent until then.
func TestTimelineAQuorumThatWasLostOnceDoesNotAnswerThoseThatWait(t *testing.T) {
	onTimeline(t, "ok ok ok@80ms ok@80ms ok@80ms", func(t *testing.T, w *timeline) {
		first := w.beginAcquire(tokenA, 10*second)
		w.sleep(time.Nanosecond) // the second comes behind it
		w.play("ok ok ok ok ok")
		next := w.beginAcquire(tokenB, 10*second)
		w.wantOutcome("the first", first, NoQuorum)
		w.wantOutcome("the second", next, Won)
	})
}
