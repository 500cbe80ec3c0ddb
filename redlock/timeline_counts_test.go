package redlock

import (
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/rdb"
	"redlock-proxy/redlock/toymaster"
)

// A count that was not won is put back once. If the connection breaks before the answer to that, nobody
// knows whether the master has done it. Done once more, it would take a number back that another client was
// told meanwhile.
func TestTimelineACountIsPutBackOnce(t *testing.T) {
	onTimeline(t, "ok mute mute", func(t *testing.T, w *timeline) {
		w.links[1].Unmute()
		w.links[2].Unmute()
		other, links := w.connect("other", timelineConfig())
		w.others = append(w.others, other)
		w.put("5 5 5", 0)
		w.play("ok mute mute")
		begin(w, func() Outcome { return incr(w.locker) })
		w.sleep(timeout / 2)
		w.links[0].LoseAnswer(time.Millisecond) // of the question that puts it back
		w.sleep(timeout/2 + time.Millisecond/2)
		w.wantValues("5 5 5")
		w.links[0].Mute()
		links[2].Mute()
		wantReply(t, incr(other), ":6\r\n")
		w.wantValues("6 6 5")
		w.links[0].Unmute() // p is connected anew
		w.elapse(0)
		w.wantValues("6 6 5")
		links[2].Unmute()
		wantReply(t, incr(other), ":7\r\n")
	})
}

// A client was told of a number by two masters. A third one missed that, and it and one of the two have counted
// something that nobody was told. So all three differ. The number is kept, whichever master comes first.
func TestTimelineFieldsThatAQuorumHasAreUnited(t *testing.T) {
	for _, copies := range [][]string{{"g1", "f1g1", "f1"}, {"f1", "g1", "f1g1"}, {"f1g1", "f1", "g1"}} {
		onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
			for i, m := range w.masters {
				v := rdb.Value{Kind: rdb.Hash}
				for pair := range slices.Chunk([]byte(copies[i]), 2) {
					v.Items = append(v.Items, pair[:1], pair[1:])
				}
				m.Store(0, []byte(key), toymaster.Entry{Value: string(rdb.Dump(v)), Packed: true})
			}
			count := RunRequest{Keys: bytesOf([]string{key}), Args: bytesOf([]string{"HINCRBY", key, "f", "1"})}
			if o := w.locker.Run(t.Context(), count); o.Verdict != NoQuorum {
				t.Errorf("%v %q", o.Verdict, o.Reply)
			}
			w.elapse(enough)
			wantReply(t, w.locker.Run(t.Context(), count), ":2\r\n")
		})
	}
}

// The connection breaks before a master hears what it must put back. Nobody holds the copy that it keeps, so
// it is mended.
func TestTimelineWhatWasNotPutBackIsMended(t *testing.T) {
	onTimeline(t, "no no no ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		w.After(5*time.Millisecond, func() { w.links[3].LoseQuestion(time.Millisecond) })
		wantReply(t, w.eval(takeIfFree, tokenA, "60000"), ":0\r\n")
		w.elapse(second)
		w.wantValues("X X X A -")
		w.elapse(enough)
		w.wantValues("X X X X -")
	})
}
