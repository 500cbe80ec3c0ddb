package redlock

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
)

// What happens to a master whose clock jumps (master/clock.go, roster/jumps.go).

func TestTimelineAClockThatJumpsForwardHasForgotten(t *testing.T) {
	bareMajority(t, func(t *testing.T, w *timeline) {
		w.masters[0].Jump(time.Minute)
		w.masters[1].Jump(time.Minute)
		if o, _ := w.acquire(tokenB, 20*second); o.Verdict == Won {
			t.Errorf("a second client: %+v", o)
		}
		w.settle()
		w.wantStandings(w.locker, "QQCCC")
		fresh := w.another(timelineConfig())
		w.settle()
		w.wantStandings(fresh, "QQCCC")
	})
}

// The process that used the database is dead when the clocks jump. The process that sees
// them jump has never used it.
func TestTimelineAClockThatJumpsConcernsDatabasesThatNobodyUses(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		other := w.another(timelineConfig())
		w.settle()
		acquire := func(l *Locker, value string) Verdict {
			return l.Acquire(t.Context(), AcquireRequest{DB: 3, Key: []byte(key), Value: []byte(value), TTL: 25 * second}).Verdict
		}
		acquire(other, "the first use of the database")
		w.sleep(30 * second)
		if v := acquire(other, tokenA); v != Won {
			t.Fatal(v)
		}
		other.Close(t.Context())
		for _, m := range w.masters[:2] {
			m.Jump(time.Minute)
		}
		for _, m := range w.masters[3:] { // where it has been lost
			delete(m.DBs[3], key)
		}
		w.settle()
		fresh := w.another(timelineConfig())
		w.settle()
		for range 5 {
			if v := acquire(fresh, tokenB); v == Won {
				t.Fatal("a second client has the lock")
			}
			w.sleep(second)
		}
		w.sleep(time.Minute)
		if v := acquire(fresh, tokenB); v != Won {
			t.Errorf("after the quarantine: %v", v)
		}
	})
}

func TestTimelineManySmallJumpsCountLikeALargeOne(t *testing.T) {
	bareMajority(t, func(t *testing.T, w *timeline) {
		// Between two checks it is less than the allowed drift.
		for range 100 {
			w.masters[0].Jump(1200 * time.Microsecond)
			w.sleep(100 * time.Millisecond)
		}
		w.settle()
		w.wantStandings(w.locker, "QCCCC")
	})
}

func TestTimelineAClockThatJumpsBackIsNoAmnesia(t *testing.T) {
	bareMajority(t, func(t *testing.T, w *timeline) {
		w.masters[0].Jump(-time.Minute)
		w.settle()
		w.wantStandings(w.locker, "CCCCC")
	})
}

// Correcting a wrong clock costs a quarantine from then on, whatever the size of the step.
func TestTimelineAClockThatIsPutRightDoesNotLockItsMasterOut(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.masters[0].Jump(2 * time.Hour)
		w.settle()
		w.wantStandings(w.locker, "QCCCC")
		w.masters[0].Jump(-2 * time.Hour)
		w.settle()
		until := w.locker.Status().Masters[0].Until
		if left := time.Until(until); left <= 0 || left > 31*second {
			t.Errorf("it votes again in %v", left)
		}
		w.sleep(32 * second)
		w.wantStandings(w.locker, "CCCCC")
	})
}

// If a clock is set back within a quarantine, the times that people read follow it.
func TestTimelineTheEndOfAQuarantineIsNeverInThePast(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.forget(0)
		w.sleep(25 * second)
		w.wantStandings(w.locker, "QCCCC")
		w.masters[0].Jump(-20 * second)
		for range 240 {
			w.sleep(second / 10)
			m := w.locker.Status().Masters[0]
			if m.State != roster.Quarantined || m.Until.Before(time.Now()) || m.Until.After(time.Now().Add(31*second)) {
				t.Fatalf("%+v at %v", m, time.Now())
			}
		}
		w.sleep(2 * second)
		w.wantStandings(w.locker, "CCCCC")
	})
}

// A machine that was paused from outside does not notice it.
func TestTimelineMastersThatAllJumpTogetherMeanThatThisProcessStoodStill(t *testing.T) {
	bareMajority(t, func(t *testing.T, w *timeline) {
		for _, m := range w.masters {
			m.Jump(2 * second)
		}
		if o, _ := w.acquire(tokenB, 20*second); o.Verdict != NoQuorum {
			t.Errorf("the votes of that moment count: %+v", o)
		}
		w.settle()
		w.wantStandings(w.locker, "CCCCC")
	})
}

// Masters that share a bad source of time jump, and the other masters show that.
func TestTimelineAQuorumThatJumpsWhileOthersDoNotHasJumped(t *testing.T) {
	for name, row := range map[string]struct {
		script string
		by     []time.Duration
		want   string
	}{
		"three of five":                       {"ok ok ok ok ok", []time.Duration{2 * second, 2 * second, 2 * second}, "QQQCC"},
		"four of five":                        {"ok ok ok ok ok", []time.Duration{2 * second, 2 * second, 2 * second, 2 * second}, "QQQQC"},
		"four of five, the other is slow":     {"ok ok ok ok slow", []time.Duration{2 * second, 2 * second, 2 * second, 2 * second}, "QQQQC"},
		"four of five, the other is away":     {"ok ok ok ok kill", []time.Duration{2 * second, 2 * second, 2 * second, 2 * second}, "QQQQA"},
		"each by another amount":              {"ok ok ok", []time.Duration{2 * second, 3 * second, 4 * second}, "QQQ"},
		"the only one, of which none can say": {"ok", []time.Duration{2 * second}, "Q"},
	} {
		t.Run(name, func(t *testing.T) {
			script, slow := strings.CutSuffix(row.script, "slow")
			if slow {
				script += "ok"
			}
			onTimeline(t, script, func(t *testing.T, w *timeline) {
				w.settle()
				if slow {
					w.links[4].SetDelay(second/10, 0)
				}
				for i, by := range row.by {
					w.masters[i].Jump(by)
				}
				w.settle()
				w.wantStandings(w.locker, row.want)
			})
		})
	}
}

// If the kernel knows that the machine was suspended, that time counts like any other,
// and answers that were under way do not count.
func TestTimelineASuspendedMachineIsNoJump(t *testing.T) {
	for _, script := range []string{"ok", "ok ok ok", "ok ok ok ok kill"} {
		t.Run(script, func(t *testing.T) {
			var slept time.Duration
			cfg := timelineConfig()
			cfg.slept = func() time.Duration { return slept }
			onTimelineWith(t, cfg, script, func(t *testing.T, w *timeline) {
				w.settle()
				before := w.standings(w.locker)
				for _, k := range w.links {
					k.SetDelay(time.Millisecond, 0)
				}
				w.After(time.Millisecond/2, func() { // the questions are under way
					slept += time.Hour
					for _, m := range w.masters {
						m.Jump(time.Hour)
					}
				})
				if o, _ := w.acquire(tokenA, 20*second); o.Verdict != NoQuorum {
					t.Errorf("what was asked before the machine was suspended counts: %+v", o)
				}
				w.settle()
				w.wantStandings(w.locker, before)
				for _, m := range w.masters[:1] { // and it goes on being watched
					m.Jump(second)
				}
				w.settle()
				w.wantStandings(w.locker, strings.Replace(before, "C", "Q", 1))
			})
		})
	}
}
