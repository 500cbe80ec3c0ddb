package redlock

import (
	"context"
	"strings"
	"testing"
	"time"
)

// No master is locked out for ever. One that has forgotten votes again even if the masters
// are dead that knew for how long it must not.

func TestTimelineAMinorityThatIsDeadDoesNotKeepARestartedMasterOut(t *testing.T) {
	for name, row := range map[string]struct {
		script    string
		dead      []int
		want      string
		remembers bool
	}{
		"three masters, empty":          {"ok ok ok", []int{2}, "QCA", false},
		"three masters, with its data":  {"ok ok ok", []int{2}, "QCA", true},
		"five masters, two are dead":    {"ok ok ok ok ok", []int{3, 4}, "QCCAA", true},
		"three masters, one that hangs": {"ok ok ok", nil, "QCA", false},
	} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.settle()
				w.mustAcquire(tokenA, 9*time.Minute)
				if row.dead == nil {
					w.masters[2].Pause()
				}
				for _, i := range row.dead {
					w.masters[i].Kill()
				}
				w.sleep(second)
				w.restart(row.remembers, 0)
				w.masters[0].Remove(key)
				began := time.Now()
				w.sleep(time.Minute)
				w.wantStandings(w.locker, row.want)
				for time.Since(began) < 9*time.Minute { // as long as the lock may live
					if o, _ := w.acquire(tokenB, second); o.Verdict == Won {
						t.Fatalf("a second client after %v: %+v", time.Since(began), o)
					}
					w.sleep(30 * second)
				}
				w.sleep(2 * time.Minute)
				if w.standings(w.locker)[0] != 'C' {
					t.Fatalf("it does not vote after %v: %+v", time.Since(began), w.locker.Status())
				}
				w.mustAcquire(tokenB, second)
			})
		})
	}
}

// A process that has just started does not know a master that forgot, and another one is dead. So it takes the master
// for new: it votes after the longest quarantine, and waits for nobody.
func TestTimelineAnUnknownMasterIsTakenForNew(t *testing.T) {
	for name, remembers := range map[string]bool{"empty": false, "with its data": true} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
				w.settle()
				w.mustAcquire(tokenA, 9*time.Minute)
				w.locker.Close(t.Context())
				w.masters[2].Kill()
				w.restart(remembers, 0)
				w.masters[0].Remove(key)
				fresh := w.started(w.masters...)
				w.sleep(9 * time.Minute)
				w.wantStandings(fresh, "QCA")
				w.sleep(3 * time.Minute)
				w.wantStandings(fresh, "CCA")
			})
		})
	}
}

// A master is dead, and another one restarts for longer than the restart delay.
func TestTimelineALongRestartWaitsForNobody(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.masters[2].Kill()
		w.masters[0].Kill()
		w.sleep(3 * 30 * second)
		w.masters[0].Restart(true)
		w.sleep(9 * time.Minute)
		w.wantStandings(w.locker, "QCA")
		w.sleep(3 * time.Minute)
		w.wantStandings(w.locker, "CCA")
	})
}

// A dead master is replaced when the others vote, and the reload says what it waits for.
func TestTimelineADeadMasterIsReplacedWhenTheOthersVote(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		old := w.another(timelineConfig())
		w.settle()
		w.mustAcquire(tokenA, 20*second)
		w.masters[2].Kill()
		w.restart(false, 0)
		w.sleep(40 * second)
		w.wantStandings(w.locker, "QCA")
		cfg := w.withMaster(w.locker, 2, "m4")
		if err := w.locker.Reload(context.Background(), cfg); err == nil || !strings.Contains(err.Error(), "m1 does not vote") {
			t.Fatal(err)
		}
		w.sleep(11 * time.Minute)
		if err := w.locker.Reload(context.Background(), cfg); err != nil {
			t.Fatal(err)
		}
		w.masters[2].Restart(true) // it is back, and no quorum is with it any more
		w.settle()
		w.wantStandings(w.locker, "CCQ")
		w.wantStandings(old, "CCB")
		w.sleep(11 * time.Minute)
		w.wantStandings(w.locker, "CCC")
		w.mustAcquire(tokenB, second)
	})
}

// A master that is needed is not replaced while another is in quarantine.
func TestTimelineAMasterThatIsNeededIsNotReplaced(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.forget(0)
		w.settle()
		w.wantStandings(w.locker, "QCC")
		if err := w.locker.Reload(context.Background(), w.withMaster(w.locker, 2, "m4")); err == nil {
			t.Error("no quorum would be left")
		}
	})
}

// What other masters could not report, they report when they are back.
func TestTimelineTheLongestQuarantineEndsEarlyWhereOthersCanTell(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.masters[2].Pause()
		w.restart(false, 0)
		w.sleep(40 * second)
		if left := time.Until(w.locker.Status().Masters[0].Until); left < 8*time.Minute {
			t.Errorf("it votes again in %v, and nobody can tell what it forgot", left)
		}
		w.masters[2].Resume()
		w.settle()
		if left := time.Until(w.locker.Status().Masters[0].Until); left > 30*second {
			t.Errorf("it votes again in %v", left)
		}
		w.sleep(30 * second)
		w.wantStandings(w.locker, "CCC")
	})
}
