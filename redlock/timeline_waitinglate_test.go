//go:build !race

package redlock

import "testing"

// One ballot without a quorum says nothing about the next: the masters that were slow may be on time
// then. Three masters answer at one moment, and were silent until then. The race detector draws the order of
// what happens at that moment, and the second may ask before they count again. So it is not asked here.
func TestTimelineAQuorumThatWasLostOnceDoesNotAnswerThoseThatWait(t *testing.T) {
	onTimeline(t, "ok ok ok@80ms ok@80ms ok@80ms", func(t *testing.T, w *timeline) {
		first := w.inLine(tokenA)
		w.play("ok ok ok ok ok")
		second := w.inLine(tokenB)
		w.wantOutcome("the first", first, NoQuorum)
		w.wantOutcome("the second", second, Won)
	})
}
