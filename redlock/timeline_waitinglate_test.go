package redlock

import (
	"testing"
	"time"
)

// One ballot without a quorum says nothing about the next: the masters that were slow may be on time
// then. Three masters answer at one moment, and were silent until then.
func TestTimelineAQuorumThatWasLostOnceDoesNotAnswerThoseThatWait(t *testing.T) {
	onWorldTimeline(t, "ok ok ok@80ms ok@80ms ok@80ms", func(t *testing.T, w *timeline) {
		first, firstEnded := w.begin(tokenA)
		w.sleep(time.Nanosecond) // the second comes behind it
		w.play("ok ok ok ok ok")
		second, secondEnded := w.begin(tokenB)
		w.loop.Join(firstEnded)
		w.loop.Join(secondEnded)
		if first.Verdict != NoQuorum || second.Verdict != Won {
			t.Errorf("%v and %v, want %v and %v", first.Verdict, second.Verdict, NoQuorum, Won)
		}
	})
}
