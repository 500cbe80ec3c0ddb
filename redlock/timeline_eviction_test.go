package redlock

import (
	"strings"
	"testing"
	"time"
)

// A master that may evict locks does not vote (eviction.go), and once it may no
// more it is in quarantine for what it may have evicted.
func TestTimelineAMasterThatMayEvictLocksDoesNotVote(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.masters[0].configure("volatile-lru")
		time.Sleep(evictionPause + second)
		w.wantStandings(w.locker, "BCC")
		if reason := w.locker.Status().Masters[0].Reason; !strings.Contains(reason, "volatile-lru") || !strings.Contains(reason, "set noeviction") {
			t.Errorf("it is told as %q", reason)
		}
		fresh := w.another(timelineConfig())
		w.settle()
		w.wantStandings(fresh, "BCC")
		w.mustAcquire(tokenA, second)
		w.masters[0].configure("noeviction")
		time.Sleep(evictionPause + second)
		w.wantStandings(w.locker, "QCC")
		w.wantStandings(fresh, "QCC")
		time.Sleep(30 * second)
		w.wantStandings(w.locker, "CCC")
		w.wantStandings(fresh, "CCC")
	})
}

func TestEvicts(t *testing.T) {
	for info, want := range map[string]string{
		"maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n":    "",
		"maxmemory:100\r\nmaxmemory_policy:noeviction\r\n":   "",
		"maxmemory:100\r\nmaxmemory_policy:volatile-ttl\r\n": "volatile-ttl",
		"maxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n":  "allkeys-lru",
		"used_memory:1\r\n": "",
	} {
		if got := evicts([]byte(info)); got != want {
			t.Errorf("%q evicts by %q, want %q", info, got, want)
		}
	}
}
