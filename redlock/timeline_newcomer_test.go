package redlock

import (
	"context"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/toymaster"
)

// Servers in a master's place that a process has not met before (roster/joining.go).

// started starts a process with a list of its own.
func (w *timeline) started(servers ...*toymaster.Master) *Locker {
	cfg := timelineConfig()
	cfg.New, cfg.Loop = false, w.loop
	for i, m := range servers {
		k := toymaster.NewLink("started-"+m.Name, m, uint64(i), w.World)
		cfg.Masters = append(cfg.Masters, Master{Name: m.Name, Dial: func(ctx context.Context) (net.Conn, error) { return k.Dial(ctx) }})
	}
	l, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.others = append(w.others, l)
	return l
}

// newcomer makes a server that nobody knows, empty or with a copy of another one's data.
func (w *timeline) newcomer(name string, copied *toymaster.Master) *toymaster.Master {
	m := newMaster(name)
	if copied != nil {
		m.DBs = copied.Copied()
	}
	return m
}

func TestTimelineAServerThatAProcessIsStartedWithTakesTheVoteFromTheOldOne(t *testing.T) {
	for name, copies := range map[string]bool{"empty": false, "with a copy of the data": true} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
				w.settle()
				w.mustAcquire(tokenA, 40*second)
				var source *toymaster.Master
				if copies {
					source = w.masters[2]
				}
				m6 := w.newcomer("m6", source)
				fresh := w.started(w.masters[0], w.masters[1], m6)
				began := time.Now()
				for w.standings(fresh) != "CCC" {
					if time.Since(began) > 12*time.Minute {
						t.Fatalf("it never votes: %+v", fresh.Status())
					}
					w.sleep(50 * time.Millisecond)
					if w.locker.Status().Masters[2].State == roster.Voting && fresh.Status().Masters[2].State == roster.Voting {
						t.Fatal("two servers vote in one place")
					}
				}
				if took := time.Since(began); took < 10*time.Minute {
					t.Errorf("the new server votes after %v, when locks of before still live", took)
				}
				w.wantStandings(w.locker, "CCB")
				// The old server does not come back, not even empty.
				w.masters[2].Flush()
				w.settle()
				w.wantStandings(w.locker, "CCU")
				if status := w.locker.Status(); !strings.Contains(status.Masters[2].Reason, "another server took its place in epoch 2") {
					t.Errorf("%+v", status)
				}
				w.wantStandings(fresh, "CCC")
				// The old process gets the same list.
				cfg := timelineConfig()
				cfg.Masters = slices.Clone(w.locker.settings().Masters)
				cfg.Masters[2] = fresh.settings().Masters[2]
				if err := w.locker.Reload(t.Context(), cfg); err != nil {
					t.Fatal(err)
				}
				w.settle()
				for _, l := range []*Locker{w.locker, fresh} {
					w.wantStandings(l, "CCC")
					if epoch := l.Status().Epoch; epoch != 2 {
						t.Errorf("epoch %d", epoch)
					}
				}
			})
		})
	}
}

// A reload has put a server in a place. Then a process that starts with a server of
// another name there is refused.
func TestTimelineAServerThatAReloadBroughtInGivesWayOnlyToAReload(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		if err := w.locker.Reload(t.Context(), w.withMaster(w.locker, 2, "m6")); err != nil {
			t.Fatal(err)
		}
		fresh := w.started(w.masters[0], w.masters[1], w.newcomer("m7", nil))
		w.sleep(11 * time.Minute)
		w.wantStandings(w.locker, "CCC")
		w.wantStandings(fresh, "CCU")
		if reason := fresh.Status().Masters[2].Reason; !strings.Contains(reason, "reload this proxy with the present list") {
			t.Error(reason)
		}
	})
}

// A process that knows a master treats it as restarted. A process that has just started
// leaves that to the other one.
func TestTimelineAMasterThatSomebodyKnowsIsNoNewcomer(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.forget(0)
		w.masters[1].Kill()
		w.masters[1].Restart(true)
		fresh := w.started(w.masters...)
		w.sleep(time.Minute)
		for _, l := range []*Locker{w.locker, fresh} {
			w.wantStandings(l, "CCCCC")
			if epoch := l.Status().Epoch; epoch != 1 {
				t.Errorf("epoch %d", epoch)
			}
		}
	})
}

// Masters that were restarted while no process ran vote again, whatever their number.
func TestTimelineMastersThatNobodyKnowsVoteAgain(t *testing.T) {
	for name, restart := range map[string]func(*timeline){
		"one with its data":  func(w *timeline) { w.restart(true, 0) },
		"two with theirs":    func(w *timeline) { w.restart(true, 0, 1) },
		"all with theirs":    func(w *timeline) { w.restart(true, 0, 1, 2, 3, 4) },
		"one empty":          func(w *timeline) { w.restart(false, 4) },
		"two empty":          func(w *timeline) { w.restart(false, 1, 4) },
		"four empty":         func(w *timeline) { w.restart(false, 0, 1, 2, 3) },
		"two empty, two not": func(w *timeline) { w.restart(false, 0, 1); w.restart(true, 2, 3) },
	} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.settle()
				w.locker.Close(t.Context())
				restart(w)
				one, other := w.started(w.masters...), w.started(w.masters...)
				w.sleep(time.Minute) // nobody remembers where all are with theirs
				if want := map[bool]string{true: "CCCCC", false: "Q"}[name == "all with theirs"]; !strings.Contains(w.standings(one), want) {
					t.Errorf("the masters stand %s", w.standings(one))
				}
				w.sleep(11 * time.Minute)
				w.wantStandings(one, "CCCCC")
				w.wantStandings(other, "CCCCC")
			})
		})
	}
}

func (w *timeline) restart(remembers bool, masters ...int) {
	for _, i := range masters {
		w.masters[i].Kill()
		w.masters[i].Restart(remembers)
	}
}

// A member whose data are older than its record may join again, too.
func TestTimelineAMemberWithOldDataJoinsAnew(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		old := w.masters[2].Value(marker.Key)
		w.locker.Close(t.Context())
		w.restart(true, 2)
		fresh := w.started(w.masters...)
		w.sleep(11 * time.Minute)
		w.wantStandings(fresh, "CCC")
		w.masters[2].Kill()
		w.masters[2].Restart(true)
		w.masters[2].Put(marker.Key, old, 0)
		w.sleep(11 * time.Minute)
		w.wantStandings(fresh, "CCC")
		if epoch := fresh.Status().Epoch; epoch != 3 {
			t.Errorf("epoch %d", epoch)
		}
	})
}
