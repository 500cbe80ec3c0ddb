package redlock

import (
	"strings"
	"testing"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/toymaster"
)

// Memory that is replaced without a restart (roster/judge.go).

// A failover there and back loads the copy of a replica that had fallen behind,
// with the marker in it.
func TestTimelineAFailoverThereAndBackHasForgotten(t *testing.T) {
	for name, cut := range map[string]bool{"on one connection": false, "with another": true} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.settle()
				var copies []map[int]map[string]toymaster.Entry
				for _, m := range w.masters[:2] {
					copies = append(copies, m.Copied())
				}
				w.put("A A A - -", 20*second)
				for i, copied := range copies {
					w.masters[i].BecomeReplica()
					w.masters[i].BecomeMaster(copied)
					if cut {
						w.links[i].Cut()
					}
				}
				w.sleep(second / 10)
				if o, _ := w.acquire(tokenB, 20*second); o.Verdict == Won {
					t.Errorf("a second client: %+v", o)
				}
				w.settle()
				w.wantStandings(w.locker, "QQCCC")
				fresh := w.another(timelineConfig())
				w.settle()
				w.wantStandings(fresh, "QQCCC")
				w.sleep(30 * second)
				w.wantStandings(w.locker, "CCCCC")
				w.wantStandings(fresh, "CCCCC")
			})
		})
	}
}

// A failover between two batches of one connection is noticed, too. The first grant after
// it does not count.
func TestTimelineAFailoverBetweenTwoBatchesGrantsNothing(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		var copies []map[int]map[string]toymaster.Entry
		for _, m := range w.masters[:2] {
			copies = append(copies, m.Copied())
		}
		w.put("A A A - -", 20*second)
		w.get() // INFO was asked with this, and is not again for a while
		for i, copied := range copies {
			w.masters[i].BecomeReplica()
			w.masters[i].BecomeMaster(copied)
		}
		if o, _ := w.acquire(tokenB, 20*second); o.Verdict == Won {
			t.Errorf("a second client: %+v", o)
		}
		w.settle()
		w.wantStandings(w.locker, "QQCCC")
	})
}

// If nothing is written afterwards, only the replication id shows it.
func TestTimelineAFailoverThereAndBackIsNoticedByReaders(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.get()
		m := w.masters[0]
		copied := m.Copied()
		m.BecomeReplica()
		m.BecomeMaster(copied)
		for range 20 {
			w.get()
			w.sleep(second / 100)
		}
		w.wantStandings(w.locker, "UCCCC")
		w.settle()
		w.wantStandings(w.locker, "QCCCC")
	})
}

// A server that never replicated gets ROLE, which costs it less than INFO, and INFO only
// now and then. A server that does not allow ROLE gets INFO with every batch.
func TestTimelineRoleIsAskedInsteadOfInfo(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.masters[1].NoRole = true
		w.links[1].Cut()
		w.masters[2].Backlog, w.masters[2].Offset = true, 14
		w.settle()
		before := len(w.executions())
		for range 60 {
			w.mustAcquire(tokenA, second)
			w.release()
		}
		asked := map[string]int{}
		for _, x := range w.executions()[before:] {
			asked[x.Master+" "+string(x.Args[0])]++
		}
		for i, m := range w.masters {
			role, info := asked[m.Name+" ROLE"], asked[m.Name+" INFO"]
			if i == 0 && (role < 100 || info < 1 || info > 5) || i > 0 && (role > 0 || info < 120) {
				t.Errorf("%s was asked ROLE %d times and INFO %d times", m.Name, role, info)
			}
		}
		w.wantStandings(w.locker, "CCC")
	})
}

// A master that becomes a replica does not vote from that very batch on. When it is a
// master again, it is in quarantine.
func TestTimelineALiveMasterThatBecomesAReplicaStopsVoting(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.masters[0].BecomeReplica()
		w.masters[1].BecomeReplica()
		if o, _ := w.acquire(tokenA, 20*second); o.Verdict != NoQuorum {
			t.Errorf("with two replicas: %+v", o)
		}
		w.elapse(0)
		w.wantStandings(w.locker, "BBC")
		if reason := w.locker.Status().Masters[0].Reason; !strings.Contains(reason, "replica") {
			t.Errorf("it is told as %q", reason)
		}
		w.masters[0].BecomeMaster(w.masters[0].Copied())
		w.settle()
		w.wantStandings(w.locker, "QBC")
		w.sleep(30 * second)
		w.wantStandings(w.locker, "CBC")
		w.mustAcquire(tokenB, second)
	})
}

// A replica that a process finds when it starts does not hinder the other masters, and is
// not excluded for ever.
func TestTimelineAReplicaThatBecomesAMasterVotes(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.locker.Close(t.Context())
		w.masters[0].BecomeReplica()
		fresh := w.started(w.masters...)
		w.settle()
		w.wantStandings(fresh, "BCC")
		w.masters[0].BecomeMaster(w.masters[0].Copied())
		w.settle()
		w.wantStandings(fresh, "QCC")
		w.sleep(30 * second)
		w.wantStandings(fresh, "CCC")
	})
}

// A server changes its replication id when its first replica comes, as for a backup. It
// has forgotten nothing then.
func TestTimelineTheFirstReplicaIsNoAmnesia(t *testing.T) {
	onTimeline(t, "ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		for _, m := range w.masters {
			m.Replid[0] = "new-" + m.Name
		}
		w.mustAcquire(tokenA, 20*second)
		w.settle()
		w.wantStandings(w.locker, "CCC")
		for _, m := range w.masters {
			if text := m.Value(marker.Key); !strings.Contains(text, " replid=new-"+m.Name+" ") {
				t.Errorf("it is not on record: %s", text)
			}
		}
	})
}
