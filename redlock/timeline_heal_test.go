package redlock

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/heal"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/roster"
)

// healConfig heals the timeline's key every 20 s.
func healConfig() Config {
	cfg := timelineConfig()
	cfg.Heal = Heal{Every: 20 * second, Rate: 1000, Most: 1 << 10, Covers: func(_ int, k []byte) bool { return strings.HasPrefix(string(k), "lock:") }}
	return cfg
}

// healed is after the passes that changes of states cause. Each waits and is quiet twice.
const healed = 15 * second

func TestTimelineALockOnABareMajorityIsHealed(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Minute} {
		onTimelineWith(t, healConfig(), "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.elapse(healed) // the first pass finds nothing
			w.play("ok ok ok kill kill")
			w.elapse(second)
			w.mustAcquire(tokenA, ttl)
			w.masters[3].Restart(true)
			w.masters[4].Restart(true)
			w.elapse(healed)
			w.wantValues("A A A A A")
			for i, m := range w.masters {
				if wrote := w.countHeard(i, "undo.lua"); i < 3 && wrote > 0 {
					t.Errorf("master %d has the lock, and heard of %d copies", i+1, wrote)
				}
				switch left := m.TTL(key); {
				case ttl == 0 && left != -1:
					t.Errorf("master %d has %v left of a permanent lock", i+1, left)
				case i >= 3 && (left < w.masters[0].TTL(key) || left > w.masters[0].TTL(key)+10*time.Millisecond):
					t.Errorf("the copy on master %d ends in %v, and the lock in %v", i+1, left, w.masters[0].TTL(key))
				}
			}
			if o := byDEL(w.locker); o.Verdict != Won {
				t.Errorf("%+v", o)
			}
			w.elapse(0)
			w.wantValues("- - - - -")
		})
	}
}

func TestTimelineNothingIsHealedUnlessAskedFor(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A - -", time.Hour)
		w.elapse(5 * time.Minute)
		w.wantValues("A A A - -")
		w.wantHeard(3, "")
	})
}

func TestTimelineWhatTheSettingsDoNotCoverIsNotHealed(t *testing.T) {
	cfg := healConfig()
	cfg.Heal.Covers = func(int, []byte) bool { return false }
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.elapse(healed)
		w.put("A A A - -", time.Hour)
		w.elapse(time.Minute)
		w.wantValues("A A A - -")
		if w.countHeard(0, "SCAN") == 0 {
			t.Error("nobody looked")
		}
	})
}

// awaitHeal lets time pass until something that the next pass does has happened.
func (w *timeline) awaitHeal(what string, happened func() bool) {
	w.t.Helper()
	step := 5 * time.Millisecond
	for began := time.Now(); !happened(); w.elapse(step) {
		if w.countHeard(0, "SCAN") > 0 {
			step = 200 * time.Microsecond
		}
		if time.Since(began) > 2*time.Minute {
			w.t.Fatalf("the time is over, and this did not happen: %s", what)
		}
	}
}

// beforeTheWrite puts copies on masters, waits until a pass has seen them, and calls change
// before the pass writes.
func (w *timeline) beforeTheWrite(copies string, change func()) {
	w.put(copies, time.Hour)
	w.awaitHeal("a look", func() bool { return w.countHeard(3, "EXEC") == 1 })
	w.elapse(second)
	change()
}

func (w *timeline) countHeard(master int, name string) int {
	return strings.Count(", "+w.heard(master)+",", ", "+name+",")
}

func onHealing(t *testing.T, test func(t *testing.T, w *timeline)) {
	t.Helper()
	onHealingWith(t, healConfig(), test)
}

func onHealingWith(t *testing.T, cfg Config, test func(t *testing.T, w *timeline)) {
	t.Helper()
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.elapse(healed)
		w.log = nil
		test(t, w)
	})
}

func TestTimelineAnotherHoldersVoteIsNoGap(t *testing.T) {
	onHealing(t, func(t *testing.T, w *timeline) {
		w.beforeTheWrite("A A A - B", func() { w.masters[3].Put(key, tokenB, time.Hour) })
		w.elapse(healed)
		w.wantValues("A A A B B")
	})
}

func TestTimelineWhatWasReleasedMeanwhileIsNotHealed(t *testing.T) {
	onHealing(t, func(t *testing.T, w *timeline) {
		w.beforeTheWrite("A A A - -", func() {
			if o := byDEL(w.locker); o.Verdict != Won {
				t.Errorf("%+v", o)
			}
		})
		w.elapse(healed)
		w.wantValues("- - - - -")
	})
}

func TestTimelineOnlyWhatTheSameQuorumHeldAllTheTimeIsHealed(t *testing.T) {
	onHealing(t, func(t *testing.T, w *timeline) {
		w.beforeTheWrite("A A A - -", func() { w.put("B B B - -", time.Hour) })
		w.elapse(3 * second)
		w.wantValues("B B B - -")
	})
}

// A release reaches the masters that lack the lock before they get their copies, and the
// others after they were looked at.
func TestTimelineACopyOfAReleasedLockIsDeleted(t *testing.T) {
	for _, holds := range []string{"A A A - -", "1 1 1 - -"} {
		onHealing(t, func(t *testing.T, w *timeline) {
			w.put(holds, time.Hour)
			w.awaitHeal("a copy", func() bool { return w.masters[3].Value(key) != "" })
			for i := range 3 {
				w.masters[i].Remove(key)
			}
			w.elapse(3 * second)
			w.wantValues("- - - - -")
		})
	}
}

// The copies stay while a master is late with the release, as it may hold the lock with them. Then the next
// request has them deleted.
func TestTimelineCopiesOfAReleasedLockAreStrays(t *testing.T) {
	onHealing(t, func(t *testing.T, w *timeline) {
		w.put("A A A - -", time.Hour)
		w.awaitHeal("a copy", func() bool { return w.masters[3].Value(key) != "" })
		w.masters[1].Remove(key)
		w.masters[2].Remove(key)
		w.elapse(3 * second)
		w.wantValues("A - - A A")
		w.masters[0].Remove(key)
		if o := w.get(); o.Verdict != Lost {
			t.Errorf("%+v", o)
		}
		w.elapse(3 * second)
		w.wantValues("- - - - -")
	})
}

// A master that stood still between the look and the write writes nothing.
func TestTimelineACopyIsWrittenAtOnceOrNever(t *testing.T) {
	onHealing(t, func(t *testing.T, w *timeline) {
		w.put("A A A - -", time.Hour)
		w.awaitHeal("the second look", func() bool { return w.countHeard(3, "EXEC") == 2 })
		w.masters[3].Pause()
		w.elapse(300 * time.Millisecond)
		w.masters[3].Resume()
		w.elapse(second)
		if w.countHeard(3, "undo.lua") == 0 {
			t.Error("the master did not hear of the copy")
		}
		w.wantValues("A A A - A")
	})
}

func TestTimelineMarkersCoverHealedCopies(t *testing.T) {
	onHealing(t, func(t *testing.T, w *timeline) {
		w.put("A A A - -", 8*time.Minute)
		w.elapse(time.Minute + healed)
		w.wantValues("A A A A A")
		for _, i := range []int{3, 4} {
			m, _ := marker.Parse(w.masters[i].Value(MarkerKey))
			if left := w.masters[i].TTL(key); m.Granted() < left {
				t.Errorf("the marker of master %d records %v, and its copy has %v left", i+1, m.Granted(), left)
			}
		}
	})
}

// A master in quarantine gets copies, but they do not end its quarantine, and it counts
// for nothing.
func TestTimelineHealingDoesNotShortenAQuarantine(t *testing.T) {
	onHealing(t, func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 5*time.Minute)
		w.forget(4)
		began := time.Now()
		w.elapse(10 * second)
		w.wantValues("A A A A A")
		w.play("ok ok ok kill kill")
		w.masters[4].Restart(true)
		w.masters[2].Flush()
		w.elapse(2 * second)
		if o := w.get(); o.Verdict != NoQuorum {
			t.Errorf("copies of two voting masters and of two in quarantine gave %+v", o)
		}
		if s := w.locker.Status().Masters[4]; s.State != roster.Quarantined || s.Until.Before(began.Add(5*time.Minute)) {
			t.Errorf("%v until %v, %v after it forgot", s.State, s.Until, s.Until.Sub(began))
		}
	})
}

func TestTimelineWhatIsBriefOrLargeIsNotHealed(t *testing.T) {
	onHealing(t, func(t *testing.T, w *timeline) {
		large := strings.Repeat("x", 2<<10)
		w.put(large+" "+large+" "+large+" - -", 0)
		w.elapse(time.Minute + healed)
		w.wantValues(large + " " + large + " " + large + " - -")
		for began := time.Now(); time.Since(began) < 2*time.Minute; w.elapse(second) {
			w.put("A A A - -", 4*second)
		}
		w.wantValues("A A A - -")
	})
}

// Five masters lose their memory one after the other. A permanent lock and a counter
// survive.
func TestTimelineLocksSurviveARollingRestart(t *testing.T) {
	cfg := healConfig()
	cfg.RestartDelay = 10 * second
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 0)
		for range 3 {
			if o := w.locker.Run(context.Background(), RunRequest{Keys: [][]byte{[]byte("lock:counter")}, Args: [][]byte{[]byte("INCR"), []byte("lock:counter")}}); o.Verdict != Won {
				t.Fatalf("%+v", o)
			}
		}
		for i := range w.masters {
			w.forget(i)
			w.settle()
			for began := time.Now(); w.locker.Status().Masters[i].State != roster.Voting; w.elapse(second) {
				if time.Since(began) > 15*time.Minute {
					t.Fatalf("master %d does not vote: %+v", i+1, w.locker.Status().Masters[i])
				}
			}
		}
		w.wantValues("A A A A A")
		for i, m := range w.masters {
			if n := m.Value("lock:counter"); n != "3" {
				t.Errorf("master %d counted %q", i+1, n)
			}
		}
	})
}

// The Observer hears of each copy and each pass.
func TestTimelineHealingIsTold(t *testing.T) {
	cfg := healConfig()
	told := &healTold{did: map[string]int{}}
	cfg.Observer = told
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.elapse(healed)
		w.put("A A A - -", time.Hour)
		w.elapse(time.Minute + healed)
		if did := told.sinceLast(); did != "map[m4 written:1 m5 written:1]" || told.passes() < 2 {
			t.Errorf("%s in %d passes", did, told.passes())
		}
		w.removeAll()
		large := strings.Repeat("x", 2<<10)
		w.put(large+" "+large+" "+large+" - -", time.Hour)
		w.awaitTold(told, "m5 too_large")
		w.elapse(second)
		if did := told.sinceLast(); did != "map[m4 too_large:1 m5 too_large:1]" {
			t.Error(did)
		}
		w.removeAll()
		w.put("A A A - -", time.Hour)
		w.awaitTold(told, "m5 written")
		for i := range 3 {
			w.masters[i].Remove(key)
		}
		w.elapse(3 * second)
		if did := told.sinceLast(); did != "map[m4 written:1 m5 written:1]" {
			t.Error(did)
		}
	})
}

func TestTimelineACopyThatAMasterDoesNotWriteIsToldAsRefused(t *testing.T) {
	cfg := healConfig()
	told := &healTold{did: map[string]int{}}
	cfg.Observer = told
	onHealingWith(t, cfg, func(t *testing.T, w *timeline) {
		w.put("A A A - -", time.Hour)
		w.awaitHeal("the second look", func() bool { return w.countHeard(3, "EXEC") == 2 })
		w.masters[3].Put(key, tokenB, time.Hour)
		w.elapse(second)
		if did := told.sinceLast(); did != "map[m4 refused:1 m5 written:1]" {
			t.Error(did)
		}
		w.wantValues("A A A B A")
	})
}

func (w *timeline) awaitTold(told *healTold, did string) {
	w.t.Helper()
	for began := time.Now(); !told.of(did); w.elapse(100 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			w.t.Fatalf("nobody told of %s", did)
		}
	}
}

func (w *timeline) removeAll() {
	for _, m := range w.masters {
		m.Remove(key)
	}
}

type healTold struct {
	nobody
	did      map[string]int
	complete int
}

func (h *healTold) Healed(master string, did heal.Deed) {
	h.did[master+" "+did.String()]++
}

func (h *healTold) HealPassed(_ time.Time, complete bool) {
	if complete {
		h.complete++
	}
}

func (h *healTold) of(did string) bool {
	return h.did[did] > 0
}

func (h *healTold) passes() int {
	return h.complete
}

// sinceLast returns what was told since its last call.
func (h *healTold) sinceLast() string {
	defer clear(h.did)
	return fmt.Sprint(h.did)
}
