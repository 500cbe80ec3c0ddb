package redlock

import (
	"strings"
	"testing"
)

// A master that may evict locks does not vote (master/eviction.go). When that ends, it is in
// quarantine for the locks that it may have evicted.
func TestTimelineAMasterThatMayEvictLocksDoesNotVote(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.masters[0].Configure("volatile-lru")
		w.sleep(11 * second)
		w.wantStandings(w.locker, "BCC")
		if reason := w.locker.Status().Masters[0].Reason; !strings.Contains(reason, "volatile-lru") || !strings.Contains(reason, "set noeviction") {
			t.Errorf("it is told as %q", reason)
		}
		fresh := w.another(timelineConfig())
		w.settle()
		w.wantStandings(fresh, "BCC")
		w.mustAcquire(tokenA, second)
		w.masters[0].Configure("noeviction")
		w.sleep(11 * second)
		w.wantStandings(w.locker, "QCC")
		w.wantStandings(fresh, "QCC")
		w.sleep(30 * second)
		w.wantStandings(w.locker, "CCC")
		w.wantStandings(fresh, "CCC")
	})
}
