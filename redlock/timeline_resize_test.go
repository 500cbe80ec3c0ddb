package redlock

import (
	"context"
	"fmt"
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
		cfg.Masters = append(cfg.Masters, w.joining(name))
	}
	return cfg
}

// cycles takes and releases the lock every second, for some time.
func (w *timeline) cycles(lasts time.Duration) {
	w.t.Helper()
	for until := time.Now().Add(lasts); time.Now().Before(until); w.sleep(second) {
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != Won {
			w.t.Errorf("acquire: %+v", o)
		}
		if o, _ := w.release(); o.Verdict != Won {
			w.t.Errorf("release: %+v", o)
		}
	}
}

// mayChange waits until the status says that the next change may come.
func (w *timeline) mayChange(l *Locker) {
	w.t.Helper()
	next := l.Status().NextChange
	if left := time.Until(next); left > 11*time.Minute || left < 0 {
		w.t.Errorf("the next change may come at %v", next)
	}
	w.cycles(time.Until(next) + second)
	w.settle()
}

func TestTimelineTheNumberOfMastersGrowsAndShrinks(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		old := w.another(timelineConfig())
		w.settle()
		x := w.listen()
		defer x.Close()
		x.Subscribe(t.Context(), "chan")
		three := w.withMore(w.locker)
		four := w.withMore(w.locker, "m4")
		if err := w.locker.Reload(t.Context(), four); err != nil {
			t.Fatal(err)
		}
		w.settle()
		w.wantStandings(w.locker, "CCCQ")
		five := w.withMore(w.locker, "m5")
		if err := w.locker.Reload(t.Context(), five); err == nil || !strings.Contains(err.Error(), "the next change may come at") {
			t.Errorf("%v", err)
		}
		w.mayChange(w.locker)
		w.wantStandings(w.locker, "CCCC")
		if err := w.locker.Reload(t.Context(), five); err != nil {
			t.Fatal(err)
		}
		w.mayChange(w.locker)
		w.wantStandings(w.locker, "CCCCC")
		w.wantStandings(old, "CCCAA")
		if why := old.Status().Masters[4].Reason; !strings.Contains(why, "reload this proxy") {
			t.Errorf("the other process says %q", why)
		}
		x.want(t, "gap, gap")
		// A ballot of the other process needs three of five, too.
		w.masters[0].Kill()
		w.settle()
		if o := old.Acquire(t.Context(), AcquireRequest{Key: []byte("another"), Value: []byte(tokenB), TTL: second}); o.Verdict != NoQuorum || o.Needed != 3 || o.Asked != 5 {
			t.Errorf("%+v", o)
		}
		w.masters[0].Restart(true)
		w.sleep(2 * time.Minute)
		for _, cfg := range []Config{four, three} {
			if err := w.locker.Reload(t.Context(), cfg); err != nil {
				t.Fatal(err)
			}
			w.mayChange(w.locker)
		}
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
		if err := w.locker.Reload(t.Context(), withFirst(three.Masters, 2)); err == nil || !strings.Contains(err.Error(), "3 must stay") {
			t.Errorf("%v", err)
		}
	})
}

// withFirst is a configuration with short limits and the first n of some masters.
func withFirst(masters []Master, n int) Config {
	cfg := timelineConfig()
	cfg.RestartDelay, cfg.MaxQuarantine, cfg.Masters = 2*second, 4*second, slices.Clone(masters[:n])
	return cfg
}

// Clients of two processes lock all the time while three masters become four, and three again. Each
// request that a step overtakes is tried again, and those that come then wait until votes count.
func TestTimelineNoRequestIsRefusedWhileTheNumberChanges(t *testing.T) {
	cfg := timelineConfig()
	cfg.RestartDelay, cfg.MaxQuarantine = 2*second, 4*second
	onTimelineWith(t, cfg, "ok ok ok", func(t *testing.T, w *timeline) {
		both := []*Locker{w.locker, w.another(cfg)}
		w.settle()
		ctx, stop := context.WithCancel(t.Context())
		working := w.crew()
		asked := 0
		check := func(what string, o Outcome) {
			if asked++; o.Verdict == NoQuorum || o.Verdict == Lost && what != "acquire" {
				t.Errorf("%s: %v, overtaken: %v, %s", what, o.Verdict, o.Overtaken, o.NoQuorumError())
			}
		}
		for i := range 6 {
			l, kept := both[i%2], []byte(fmt.Sprintf("kept %d", i))
			check("keep", l.Acquire(t.Context(), AcquireRequest{Key: kept, Value: []byte(tokenA), TTL: 10 * second}))
			pause := time.Duration(7+2*i) * time.Millisecond
			working.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					token := fmt.Sprintf("the token of client %d in turn %d", i, n)
					o := l.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(token), TTL: 2 * second})
					check("acquire", o)
					if o.Verdict == Won {
						check("release", l.Release(t.Context(), ReleaseRequest{Key: []byte(key), Value: []byte(token)}))
					}
					w.sleep(pause)
				}
			})
			working.Go(func() {
				for ctx.Err() == nil {
					own := []byte(fmt.Sprintf("own %d", i))
					if o := l.Acquire(t.Context(), AcquireRequest{Key: own, Value: []byte(tokenB), TTL: 2 * second}); o.Verdict == Won {
						// One that a step meets may be refused, because its first look shows too little.
						if o = l.Release(t.Context(), ReleaseRequest{Key: own}); o.Verdict == NoQuorum && !o.Overtaken {
							t.Errorf("a plain DEL: %s", o.NoQuorumError())
						}
					}
					w.sleep(pause)
				}
			})
			working.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					switch n % 3 {
					case 0:
						check("extend", l.Extend(t.Context(), ExtendRequest{Key: kept, TTL: 10 * second}))
					case 1:
						check("get", l.Get(t.Context(), 0, kept))
					case 2:
						check("token", l.Token(t.Context(), TokenRequest{Key: kept, Value: []byte(tokenA)}))
					}
					w.sleep(pause)
				}
			})
		}
		first := slices.Clone(w.locker.settings().Masters)
		others := slices.Clone(both[1].settings().Masters)
		added := w.joining("m4")
		first, others = append(first, added), append(others, added)
		for _, n := range []int{4, 3} {
			for i, masters := range [][]Master{first, others} {
				if err := both[i].Reload(t.Context(), withFirst(masters, n)); err != nil {
					t.Fatal(err)
				}
			}
			for wait := 0; ; wait++ {
				one, other := both[0].Status(), both[1].Status()
				if len(one.Masters) == n && len(other.Masters) == n && one.Ready() && other.Ready() && time.Now().After(one.NextChange) {
					break
				}
				if wait == 120 {
					t.Fatalf("never %d masters: %+v", n, one)
				}
				w.sleep(time.Second)
			}
		}
		stop()
		working.Wait()
		t.Logf("%d requests", asked)
	})
}
