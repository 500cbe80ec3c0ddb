package redlock

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// How masters are replaced while requests go on, and what is refused.

func TestTimelineAReplacedMasterStopsVotingAndTheNewOneBeginsInQuarantine(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		old := w.another(timelineConfig())
		w.settle()
		w.mustAcquire(tokenA, time.Minute)
		joining := newFakeMaster("m6")
		defer joining.close()
		cfg := timelineConfig()
		cfg.Masters = append([]Master{}, w.locker.settings().Masters...)
		link := newLink("p-m6", joining, 6)
		cfg.Masters[2] = Master{Name: "m6", Dial: func(ctx context.Context) (net.Conn, error) { return link.dial(ctx) }}
		if err := w.locker.Reload(context.Background(), cfg); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.wantStandings(w.locker, "CCQCC")
		w.wantStandings(old, "CCBCC")
		if status := w.locker.Status(); status.Epoch != 2 || status.Masters[2].Name != "m6" {
			t.Errorf("%+v", status)
		}
		// What was replaced must not come back behind an old list, not even empty.
		w.masters[2].flush()
		w.settle()
		w.wantStandings(old, "CCUCC")
		time.Sleep(2 * time.Minute)
		w.wantStandings(w.locker, "CCCCC")
		w.wantStandings(old, "CCUCC")
		// The other process takes over the same list.
		if err := old.Reload(context.Background(), cfg); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.wantStandings(w.locker, "CCCCC")
		w.wantStandings(old, "CCCCC")
		if epoch := old.Status().Epoch; epoch != 2 {
			t.Errorf("epoch %d", epoch)
		}
	})
}

func TestTimelineAReloadThatIsNotSafeIsRefused(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		same := w.locker.settings().Masters
		other := func(name string) Master {
			m := newFakeMaster(name)
			t.Cleanup(m.close)
			link := newLink("p-"+name, m, 9)
			return Master{Name: name, Dial: func(ctx context.Context) (net.Conn, error) { return link.dial(ctx) }}
		}
		for want, masters := range map[string][]Master{
			"cannot change from 5 to 4":         same[:4],
			"order of the lock masters":         {same[1], same[0], same[2], same[3], same[4]},
			"one lock master can be replaced":   {other("m6"), other("m7"), same[2], same[3], same[4]},
			"it is the same server as m2":       {{Name: "m8", Dial: same[1].Dial}, same[1], same[2], same[3], same[4]},
			"replacing m1 by m9: nothing there": {{Name: "m9", Dial: func(context.Context) (net.Conn, error) { return nil, fmt.Errorf("nothing there") }}, same[1], same[2], same[3], same[4]},
			"above zero":                        nil,
		} {
			cfg := timelineConfig()
			cfg.Masters = masters
			if masters == nil {
				cfg.MasterTimeout, cfg.Masters = 0, same
			}
			if err := w.locker.Reload(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		w.wantStandings(w.locker, "CCCCC")
		if status := w.locker.Status(); status.Epoch != 1 {
			t.Errorf("%+v", status)
		}
	})
}
