package redlock

import (
	"fmt"
	"testing"
	"time"
)

// votesSeen counts what the Observer hears of votes and undos, by master.
type votesSeen struct {
	nobody
	seen map[string]int
}

func (v *votesSeen) add(master, what string) {
	v.seen[master+" "+what]++
}

func (v *votesSeen) Voted(master string, vote Vote, _ time.Duration, _ time.Time) {
	v.add(master, vote.String())
}
func (v *votesSeen) Undone(master string) { v.add(master, "undone") }

func (v *votesSeen) want(t *testing.T, what string, want int) {
	t.Helper()
	if v.seen[what] != want {
		t.Errorf("%s: %d, want %d of %v", what, v.seen[what], want, v.seen)
	}
}

// A master in quarantine has not failed: it answers, but does not count. Its grants are
// always undone, and do not show that clients split votes.
func TestTimelineVotesOfAQuarantinedMasterAreDiscounted(t *testing.T) {
	cfg := timelineConfig()
	seen := &votesSeen{seen: map[string]int{}}
	cfg.Observer = seen
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.forget(0, 1, 2)
		w.settle()
		w.wantStandings(w.locker, "QQQCC")
		for range 3 {
			if o, _ := w.acquire(tokenA, 10*second); o.Verdict != NoQuorum {
				t.Fatalf("%+v", o)
			}
			w.sleep(second)
		}
		for i := range 5 {
			master, discounted := fmt.Sprintf("m%d ", i+1), 0
			if i < 3 {
				discounted = 3
			}
			seen.want(t, master+"failed", 0)
			seen.want(t, master+"discounted", discounted)
			seen.want(t, master+"granted", 3-discounted)
			seen.want(t, master+"undone", 3-discounted)
		}
	})
}
