package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/scan"
)

// A cursor of SCAN is nothing to another run of the server, which has another table. So a walk
// does not count a master that restarts meanwhile, also if it votes again before the next page.
func TestTimelineAWalkDoesNotCountAMasterThatRestarts(t *testing.T) {
	for restarted, want := range map[int]bool{1: true, 2: true, 3: false} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put("A A A A A", time.Hour)
			shown := 0
			all := w.locker.Reader().Walk(t.Context(),
				func(int, []byte) bool { return true },
				func(_ int, k []byte, _ []scan.Copy) bool {
					if string(k) != key {
						return true
					}
					if shown++; shown <= restarted {
						w.masters[shown-1].Kill()
						w.elapse(second)
						w.masters[shown-1].Restart(true)
						w.elapse(5 * time.Minute)
						w.wantStandings(w.locker, "CCCCC")
					}
					return true
				})
			if all != want || shown != min(5, 3+restarted) {
				t.Errorf("%d restarted: the walk showed the key %d times, and was complete: %v", restarted, shown, all)
			}
		})
	}
}
