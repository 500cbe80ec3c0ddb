package redlock

import (
	"testing"
	"time"
)

// A count that was not won is put back once. If the connection breaks before the answer to that, nobody
// knows whether the master has done it. Done once more, it would take a number back that another client was
// told meanwhile.
func TestTimelineACountIsPutBackOnce(t *testing.T) {
	onTimeline(t, "ok mute mute", func(t *testing.T, w *timeline) {
		w.links[1].unmute()
		w.links[2].unmute()
		other, links := w.connect("other", timelineConfig())
		w.others = append(w.others, other)
		w.put("5 5 5", 0)
		w.play("ok mute mute")
		begin(w, func() Outcome { return incr(w.locker) })
		w.sleep(timeout / 2)
		w.links[0].setFate(fate{answerLost, time.Millisecond}) // of the question that puts it back
		w.sleep(timeout/2 + time.Millisecond/2)
		w.wantValues("5 5 5")
		w.links[0].mute()
		links[2].mute()
		wantReply(t, incr(other), ":6\r\n")
		w.wantValues("6 6 5")
		w.links[0].unmute() // p is connected anew
		w.elapse(0)
		w.wantValues("6 6 5")
		links[2].unmute()
		wantReply(t, incr(other), ":7\r\n")
	})
}
