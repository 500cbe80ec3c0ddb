package redlock

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// The number of masters changes while requests go on.

// withMore is a configuration with the present masters and others behind them.
func (w *timeline) withMore(l *Locker, names ...string) Config {
	cfg := timelineConfig()
	cfg.Masters = slices.Clone(l.settings().Masters)
	for _, name := range names {
		cfg.Masters = append(cfg.Masters, joining(w.t, name))
	}
	return cfg
}

// cycles takes and releases the lock every second, until so many masters count.
func (w *timeline) cycles(l *Locker, until int) {
	w.t.Helper()
	for range 15 * 60 {
		if status := l.Status(); len(status.Masters) == until && status.Ready() && status.Change.Wanted == 0 {
			return
		}
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != Won {
			w.t.Errorf("acquire: %+v", o)
		}
		if o, _ := w.release(); o.Verdict != Won {
			w.t.Errorf("release: %+v", o)
		}
		time.Sleep(second)
	}
	w.t.Fatalf("never %d masters: %+v", until, l.Status())
}

func TestTimelineTheNumberOfMastersGrowsAndShrinks(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		old := w.another(timelineConfig())
		w.settle()
		x := newListenerLog(w.locker)
		defer x.Close()
		x.Subscribe(t.Context(), "chan")
		few := w.withMore(w.locker)
		if err := w.locker.Reload(t.Context(), w.withMore(w.locker, "m4", "m5")); err != nil {
			t.Fatal(err)
		}
		if status := w.locker.Status(); len(status.Masters) != 3 || status.Change.Wanted != 5 || len(status.Others) != 2 {
			t.Errorf("%+v", status)
		}
		w.cycles(w.locker, 5)
		w.settle()
		w.wantStandings(w.locker, "CCCCC")
		w.wantStandings(old, "CCCAA")
		if why := old.Status().Masters[4].Reason; !strings.Contains(why, "reload this proxy") {
			t.Errorf("the other process says %q", why)
		}
		x.want(t, "gap, gap")
		// A ballot of the other process needs three of five, too.
		w.masters[0].kill()
		w.settle()
		if o := old.Acquire(t.Context(), AcquireRequest{Key: []byte("another"), Value: []byte(tokenB), TTL: second}); o.Verdict != NoQuorum || o.Needed != 3 || o.Asked != 5 {
			t.Errorf("%+v", o)
		}
		w.masters[0].restart(true)
		time.Sleep(2 * time.Minute)
		if err := w.locker.Reload(t.Context(), few); err != nil {
			t.Fatal(err)
		}
		w.cycles(w.locker, 3)
		w.settle()
		w.wantStandings(w.locker, "CCC")
		w.wantStandings(old, "CCC")
		for i := 3; i < 5; i++ {
			if w.locker.masters.At(i).Stream(0).Serves(time.Now()) {
				t.Errorf("master %d is still asked", i+1)
			}
		}
		if status := w.locker.Status(); len(status.Others) > 0 {
			t.Errorf("%+v", status)
		}
		x.want(t, "gap, gap")
	})
}
