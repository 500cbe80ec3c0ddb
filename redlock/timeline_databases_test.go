package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// Locks in several databases of the same masters.

// acquireIn asks for a lock in a database.
func acquireIn(t *testing.T, l *Locker, db int, value string) Verdict {
	return l.Acquire(t.Context(), AcquireRequest{DB: db, Key: []byte(key), Value: []byte(value), TTL: 20 * second}).Verdict
}

// A process that did not see the set's beginning knows the masters' clocks from database 0.
func TestTimelineAnotherDatabaseDoesNotStopTheLocksOfTheFirst(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		cfg := timelineConfig()
		cfg.New = false
		fresh := w.another(cfg)
		w.settle()
		if o := fresh.Get(t.Context(), 7, []byte(key)); o.Verdict != Lost {
			t.Errorf("GET in another database: %+v", o)
		}
		w.wantStandings(fresh, "CCCCC")
		if v := acquireIn(t, fresh, 0, tokenA); v != Won {
			t.Errorf("a lock in database 0: %v", v)
		}
		if v := acquireIn(t, fresh, 7, tokenA); v != Won {
			t.Errorf("a lock in database 7: %v", v)
		}
	})
}

func TestTimelineAnotherDatabaseDoesNotHideAJump(t *testing.T) {
	bareMajority(t, func(t *testing.T, w *timeline) {
		for _, m := range w.masters[:2] {
			m.Jump(time.Minute)
		}
		acquireIn(t, w.locker, 7, tokenB)
		if v := acquireIn(t, w.locker, 0, tokenB); v == Won {
			t.Error("a second client has the lock")
		}
	})
}

func TestTimelineADatabaseIsUsedWhileAMasterIsAway(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.play("ok ok ok ok kill")
		if v := acquireIn(t, w.locker, 3, tokenA); v != Won {
			t.Errorf("the first lock in database 3: %v", v)
		}
		w.masters[4].Restart(true)
		w.sleep(time.Minute)
		w.wantStandings(w.locker, "CCCCC")
	})
}

// The masters are restarted one after the other, with or without their data. When the
// night job comes, its database works like the others.
func TestTimelineADatabaseThatNobodyUsesIsRestartedWithTheOthers(t *testing.T) {
	for name, remembers := range map[string]bool{"with their data": true, "empty": false} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				if v := acquireIn(t, w.locker, 3, tokenA); v != Won {
					t.Fatal(v)
				}
				fresh := w.another(timelineConfig())
				w.locker.Close(t.Context())
				for i := range w.masters {
					w.restart(remembers, i)
					w.sleep(time.Minute)
				}
				if v := acquireIn(t, fresh, 3, tokenB); v != Won {
					t.Errorf("a lock in database 3: %v, %+v", v, fresh.Status())
				}
			})
		})
	}
}

// One process's marker for a new set is under way for a long time. Meanwhile another
// process has given the master a marker, and the master has granted a lock and forgotten
// it.
func TestTimelineALateMarkDoesNotCertifyWhatWasFlushed(t *testing.T) {
	const delay = 400 * time.Millisecond
	cfg := timelineConfig()
	cfg.New = true
	inWorld(t, 5, func(t *testing.T, w *timeline) {
		const ms = time.Millisecond
		w.locker, w.links = w.dial("slow", cfg, 20*ms, 0, 0, 0, delay)
		// This is the time to dial, to identify the server, and to see that it has no
		// marker. Then both have seen that there is none anywhere, and the first is quicker.
		w.sleep(5*delay - 3*ms)
		first, _ := w.dial("first", cfg, ms, ms, ms, ms, ms)
		w.others = append(w.others, first)
		w.sleep(delay / 2)
		if v := acquireIn(t, first, 0, tokenA); v != Won {
			t.Fatalf("the first lock: %v %+v", v, first.Status())
		}
		for _, m := range w.masters[:2] { // these have lost the lock
			m.Remove(key)
		}
		w.masters[4].Flush()
		for range 40 {
			if v := acquireIn(t, first, 0, tokenB); v == Won {
				t.Fatal("a second client has the lock")
			}
			w.sleep(100 * time.Millisecond)
		}
	})
}

func (w *timeline) flushDBs(dbs ...int) {
	for _, m := range w.masters {
		for _, db := range dbs {
			m.FlushDB(db)
		}
	}
}

// A FLUSHDB affects only the locks of its database, even one that nobody had used. The
// other databases still have all their locks.
func TestTimelineAFlushConcernsItsDatabase(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.flushDBs(7)
		if v := acquireIn(t, w.locker, 7, tokenA); v != NoQuorum {
			t.Errorf("a lock in the database that was flushed: %v", v)
		}
		if v := acquireIn(t, w.locker, 3, tokenA); v != Won {
			t.Errorf("a lock in another: %v", v)
		}
		w.flushDBs(0)
		w.sleep(10 * time.Minute)
		for _, db := range []int{0, 3, 7} {
			if v := acquireIn(t, w.locker, db, tokenA); v != Won {
				t.Errorf("a lock in database %d afterwards: %v", db, v)
			}
		}
	})
}

// SWAPDB brings another database's locks and its marker.
func TestTimelineDatabasesThatWereSwappedDoNotVote(t *testing.T) {
	for _, dbs := range [][2]int{{0, 3}, {3, 7}} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			acquireIn(t, w.locker, 3, "the first use")
			w.settle()
			w.swapDBs(dbs[0], dbs[1])
			if v := acquireIn(t, w.locker, 3, tokenB); v != NoQuorum {
				t.Errorf("databases %v were swapped: %v", dbs, v)
			}
			w.settle()
			w.wantStandings(w.locker, "QQQQQ")
			w.sleep(2 * time.Minute)
			w.wantStandings(w.locker, "CCCCC")
		})
	}
}

func (w *timeline) swapDBs(one, other int) {
	for _, m := range w.masters {
		m.DBs[one], m.DBs[other] = m.DBs[other], m.DBs[one]
	}
}

// A database changes places with one that nobody uses, is mended, and grants a lock. Then the two
// change back. The database has its first marker again, and does not have the lock.
func TestTimelineDatabasesThatWereSwappedBackDoNotVote(t *testing.T) {
	for _, before := range []string{"", "the other one was flushed"} {
		for _, dbs := range [][2]int{{0, 5}, {3, 7}} {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				acquireIn(t, w.locker, dbs[0], "the first use")
				w.settle()
				if before != "" {
					w.flushDBs(dbs[1])
				}
				w.swapDBs(dbs[0], dbs[1])
				w.sleep(2 * time.Minute)
				if v := acquireIn(t, w.locker, dbs[0], tokenA); v != Won {
					t.Fatalf("databases %v were swapped long ago: %v, %+v", dbs, v, w.locker.Status())
				}
				w.swapDBs(dbs[0], dbs[1])
				if v := acquireIn(t, w.locker, dbs[0], tokenB); v != NoQuorum {
					t.Errorf("databases %v were swapped back (%s): %v", dbs, before, v)
				}
				w.sleep(2 * time.Minute)
				w.wantStandings(w.locker, "CCCCC")
			})
		}
	}
}

// A database of any number is ready to be polled without a wait, once a quorum has voted there.
func TestTimelineTheLastDatabaseIsPreparedOnce(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		const last = marker.Databases - 1
		for _, m := range w.masters {
			m.Databases = marker.Databases
		}
		for end := time.Now().Add(time.Hour); acquireIn(t, w.locker, last, tokenA) != Won; w.settle() {
			if time.Now().After(end) {
				t.Fatal("no lock is granted there") // it was marked by nobody in advance, so it is quarantined at first
			}
		}
		if !w.locker.masters.IsPrepared(last) {
			t.Error("each command there leaves the loop")
		}
	})
}
