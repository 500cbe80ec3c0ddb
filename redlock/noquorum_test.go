package redlock

import (
	"testing"
	"time"
)

// An operator reads in the client's log why nobody got the lock, and how long
// that will last.
func TestNoQuorumSaysWhy(t *testing.T) {
	until := time.Date(2026, 11, 21, 6, 10, 0, 7e8, time.FixedZone("", 3600))
	for _, row := range []struct {
		outcome Outcome
		want    string
	}{
		{Outcome{Voting: 2, Answered: 2, Asked: 5, Needed: 3}, "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{Outcome{Voting: 2, Answered: 0, Asked: 5, Needed: 3}, "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{Outcome{Voting: 5, Answered: 2, Asked: 5, Needed: 3}, "QUORUMLOST only 2 of 5 lock masters answered in time, 3 needed"},
		{Outcome{Voting: 4, Answered: 4, Asked: 5, Needed: 3}, "QUORUMLOST the answers of 4 lock masters differ, 3 alike needed"},
		{Outcome{Voting: 2, Answered: 2, Asked: 5, Needed: 3, Quarantined: 2, Until: until},
			"QUORUMLOST 2 of 5 lock masters can vote, 3 needed; 2 are in quarantine, the first until 2026-11-21T05:10:00Z"},
		{Outcome{Voting: 2, Answered: 2, Asked: 5, Needed: 3, Quarantined: 1, Until: until},
			"QUORUMLOST 2 of 5 lock masters can vote, 3 needed; 1 is in quarantine, until 2026-11-21T05:10:00Z"},
		{Outcome{Voting: 3, Answered: 3, Asked: 5, Needed: 3, Quarantined: 1, Until: until},
			"QUORUMLOST the answers of 3 lock masters differ, 3 alike needed; 1 is in quarantine, until 2026-11-21T05:10:00Z"},
	} {
		if got := row.outcome.NoQuorumError(); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
}

// It counts the masters that can vote now, and says plainly where their answers
// differ.
func TestTimelineQuorumLostCountsWhoCanVote(t *testing.T) {
	for _, row := range []struct{ script, values, want string }{
		{"ok ok down down down", "- - - - -", "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{"ok ok hang hang hang", "- - - - -", "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{"ok ok err err err", "- - - - -", "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{"hang hang hang hang hang", "- - - - -", "QUORUMLOST 0 of 5 lock masters can vote, 3 needed"},
		{"ok ok ok ok down", "A A B B -", "QUORUMLOST the answers of 4 lock masters differ, 3 alike needed"},
		{"ok ok hang err down", "A A - - -", "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
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
				for range 2 {
					if o, _ := w.acquire(tokenC, 10*second); o.Verdict != NoQuorum || o.NoQuorumError() != row.want {
						t.Errorf("an acquire: %v, %s", o.Verdict, o.NoQuorumError())
					}
				}
			})
		})
	}
}

// A key that nobody may read is not taken, and the count is right there too.
func TestTimelineQuorumLostByAReadAfterALostAcquire(t *testing.T) {
	onTimeline(t, "no no no hang hang", func(t *testing.T, w *timeline) {
		w.put("A A B - -", 20*second)
		o := w.locker.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenC), TTL: 10 * second, Get: true})
		if want := "QUORUMLOST the answers of 3 lock masters differ, 3 alike needed"; o.Verdict != NoQuorum || o.NoQuorumError() != want {
			t.Errorf("%v, %s", o.Verdict, o.NoQuorumError())
		}
	})
}
