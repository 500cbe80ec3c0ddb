package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// The longest TTL that masters have on record, which sets the length of a quarantine.

// A ballot that raises the longest TTL is still under way when a master that voted in it
// forgets. The other masters do not have the TTL on record yet.
func TestTimelineTheLongestTTLIsNotLearnedTooEarly(t *testing.T) {
	cfg := timelineConfig()
	cfg.MasterTimeout = 4 * second
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		slow, links := w.connect("slow", cfg)
		w.others = append(w.others, slow)
		w.settle()
		for i, k := range links {
			switch {
			case i < 2:
				k.SetDelay(1900*time.Millisecond, 0)
			case i < 4:
				k.Mute()
			}
		}
		first := begin(w, func() Outcome {
			return slow.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: 2 * time.Minute})
		})
		w.sleep(2 * time.Millisecond)
		w.restart(false, 4)
		if o := first(); o.Verdict != Won {
			t.Fatalf("the first client: %v", o.Verdict)
		}
		for range 100 {
			w.sleep(second)
			if o, _ := w.acquire(tokenB, second); o.Verdict == Won {
				t.Fatal("a second client has the lock")
			}
		}
	})
}

// Database 0 of three masters was flushed a moment ago. Until it has a marker again, a longer TTL
// would be on record in another database only, where few processes look.
func TestTimelineALongerTTLIsOnRecordInDatabase0(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		acquireIn(t, w.locker, 3, "the first use")
		w.settle()
		for _, m := range w.masters[:3] {
			m.FlushDB(0)
		}
		r := AcquireRequest{DB: 3, Key: []byte("lock:long"), Value: []byte(tokenA), TTL: 8 * time.Minute}
		if o := w.locker.Acquire(t.Context(), r); o.Verdict != NoQuorum {
			t.Errorf("while three masters cannot record it: %v", o.Verdict)
		}
		w.settle()
		if o := w.locker.Acquire(t.Context(), r); o.Verdict != Won {
			t.Errorf("when they can: %v", o.Verdict)
		}
	})
}

// quarantineOf restarts a master and returns the time for which it does not vote.
func (w *timeline) quarantineOf(master int) time.Duration {
	w.t.Helper()
	w.restart(true, master)
	w.sleep(3 * second)
	m, ok := marker.Parse(w.masters[master].Value(marker.Key))
	if !ok || m.Since == 0 {
		w.t.Fatalf("it is not in quarantine: %+v", m)
	}
	return m.Quarantine
}

// One stray lock with a long TTL prolongs quarantines while it may live, and a little
// longer.
func TestTimelineTheLongestTTLGoesDown(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 8*time.Minute)
		w.release()
		other := w.another(timelineConfig())
		for n := range 80 {
			w.sleep(10 * second)
			l := []*Locker{w.locker, other}[n%2]
			r := AcquireRequest{DB: n % 2 * 3, Key: []byte("lock:" + string(rune('a'+n))), Value: []byte(tokenB), TTL: 40 * second}
			if o := l.Acquire(t.Context(), r); o.Verdict != Won {
				t.Fatalf("lock %d: %+v", n, o)
			}
			if n == 40 { // 8m10s after it was granted
				if q := w.quarantineOf(0); q != 8*time.Minute {
					t.Errorf("while the long one may live, a quarantine lasts %v", q)
				}
				w.sleep(5 * time.Minute)
			}
		}
		w.sleep(2 * time.Minute)
		if q := w.quarantineOf(1); q > 40*second {
			t.Errorf("long after it has ended, a quarantine lasts %v", q)
		}
		w.another(timelineConfig())
		w.sleep(5 * time.Minute)
		if q := w.quarantineOf(2); q > 40*second {
			t.Errorf("with a process that has just started, a quarantine lasts %v", q)
		}
	})
}

// A record that turns covers what was granted until then.
func TestTimelineTheLongestTTLIsKeptWhileALockMayLive(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		began := time.Now()
		w.mustAcquire(tokenA, 2*time.Minute)
		for time.Since(began) < 10*time.Minute {
			w.sleep(20 * second)
			// The longest TTL is granted again and again.
			r := AcquireRequest{Key: []byte("lock:" + time.Since(began).String()), Value: []byte(tokenB), TTL: 2 * time.Minute}
			if o := w.locker.Acquire(t.Context(), r); o.Verdict != Won {
				t.Fatalf("%v: %+v", time.Since(began), o)
			}
			for i, m := range w.masters {
				if x, _ := marker.Parse(m.Value(marker.Key)); x.Granted() < 2*time.Minute {
					t.Fatalf("after %v master %d has %v on record", time.Since(began), i+1, x)
				}
			}
		}
	})
}
