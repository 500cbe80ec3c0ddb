package redlock

import (
	"strings"
	"testing"
)

// The error counts the masters that can vote now, and says plainly if their answers
// differ.
func TestTimelineQuorumLostCountsWhoCanVote(t *testing.T) {
	for _, row := range []struct{ script, values, want string }{
		{"ok ok kill kill kill", "- - - - -", "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{"ok ok pause pause pause", "- - - - -", "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{"ok ok refuse refuse refuse", "- - - - -", "QUORUMLOST 2 of 5 lock masters can vote, 3 needed; 3 answered with an error, and /readyz of the proxy says which"},
		{"pause pause pause pause pause", "- - - - -", "QUORUMLOST 0 of 5 lock masters can vote, 3 needed"},
		{"ok ok ok ok kill", "A A B B -", "QUORUMLOST the answers of 4 lock masters differ, 3 alike needed"},
		{"ok ok pause refuse kill", "A A - - -", "QUORUMLOST 2 of 5 lock masters can vote, 3 needed; 1 answered with an error, and /readyz of the proxy says which"},
	} {
		t.Run(row.script+" "+row.values, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.put(row.values, 20*second)
				for range 2 { // the second time it is known at once
					if o := w.locker.Get(t.Context(), 0, []byte(key)); o.Verdict != NoQuorum || o.NoQuorumError() != row.want {
						t.Errorf("a read: %v, %s", o.Verdict, o.NoQuorumError())
					}
				}
				if row.values != "- - - - -" {
					return
				}
				counted, _, _ := strings.Cut(row.want, ";") // a master that could not undo is not asked again
				for range 2 {
					if o, _ := w.acquire(tokenC, 10*second); o.Verdict != NoQuorum || !strings.HasPrefix(o.NoQuorumError(), counted) {
						t.Errorf("an acquire: %v, %s", o.Verdict, o.NoQuorumError())
					}
				}
			})
		})
	}
}

// A key that the proxy may not read is not taken, and the count is right there, too.
func TestTimelineQuorumLostByAReadAfterALostAcquire(t *testing.T) {
	onTimeline(t, "no no no pause pause", func(t *testing.T, w *timeline) {
		w.put("A A B - -", 20*second)
		o := w.locker.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenC), TTL: 10 * second, Get: true})
		if want := "QUORUMLOST the answers of 3 lock masters differ, 3 alike needed"; o.Verdict != NoQuorum || o.NoQuorumError() != want {
			t.Errorf("%v, %s", o.Verdict, o.NoQuorumError())
		}
	})
}
