package redlock

import (
	"context"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// Who may vote: one test for each rule of roster.go,
// founding.go and plan.go. The scripts of package roster have those that no timeline can time.

// standings returns each master's state for the first Locker, as one letter: Voting,
// Quarantined, Starting, Unreachable, Rejected.
func (w *timeline) standings(l *Locker) string {
	letters := ""
	for _, m := range l.Status().Masters {
		letters += string("AUQCB"[m.State])
	}
	return letters
}

func (w *timeline) wantStandings(l *Locker, want string) {
	w.t.Helper()
	if got := w.standings(l); got != want {
		w.t.Errorf("the masters stand %s, want %s: %+v", got, want, l.Status())
	}
}

func (w *timeline) forget(masters ...int) {
	for _, i := range masters {
		w.masters[i].Kill()
		w.masters[i].Restart(false)
	}
}

// settle waits until connections are back and masters are checked.
func (w *timeline) settle() { w.sleep(5 * second) }

// newcomers makes masters that no Locker has seen, and a Locker over them.
func newcomers(t *testing.T, n int, cfg Config, test func(w *timeline, l *Locker)) {
	inWorld(t, n, func(t *testing.T, w *timeline) {
		w.locker, w.links = w.dial("p", cfg)
		test(w, w.locker)
	})
}

func TestTimelineANewSetBeginsInQuarantine(t *testing.T) {
	cfg := timelineConfig()
	cfg.New = false
	newcomers(t, 5, cfg, func(w *timeline, l *Locker) {
		w.sleep(20 * second)
		o, _ := w.acquire(tokenA, second)
		if o.Verdict != NoQuorum || o.Quarantined != 5 || l.Status().Ready() {
			t.Errorf("after 20 s: %+v", o)
		}
		w.sleep(12 * second)
		w.mustAcquire(tokenA, second)
	})
}

func TestTimelineASetThatEverybodyFlushedIsReplacedByOneInQuarantine(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.mustAcquire(tokenA, 20*second)
		for _, m := range w.masters {
			m.Flush()
		}
		cfg := timelineConfig()
		cfg.New = false
		fresh, _ := w.dial("fresh", cfg)
		w.others = append(w.others, fresh)
		for range 30 {
			w.sleep(second / 2)
			for _, l := range []*Locker{fresh, w.locker} {
				if o := l.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenB), TTL: second}); o.Verdict == Won {
					t.Fatal("a second client has the lock")
				}
			}
		}
		w.sleep(30 * second)
		w.wantStandings(fresh, "CCCCC")
		w.wantStandings(w.locker, "CCCCC")
	})
}

func TestTimelineASetThatBeganAnewTakesOverItsOtherDatabases(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		r := AcquireRequest{DB: 3, Key: []byte(key), Value: []byte(tokenA), TTL: 20 * second}
		if o := w.locker.Acquire(t.Context(), r); o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
		for _, m := range w.masters {
			delete(m.DBs, 0)
		}
		cfg := timelineConfig()
		cfg.New = false
		fresh, _ := w.dial("fresh", cfg)
		w.others = append(w.others, fresh)
		r.Value, r.Key = []byte(tokenB), []byte("lock:another")
		w.sleep(second)
		fresh.Acquire(t.Context(), r)
		w.sleep(70 * second)
		for _, l := range []*Locker{fresh, w.locker} {
			if o := l.Acquire(t.Context(), r); o.Verdict == NoQuorum {
				t.Errorf("%+v", o)
			}
			w.wantStandings(l, "CCCCC")
		}
	})
}

func TestTimelineADatabaseThatWasFlushedIsNotUsedForTheFirstTime(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		acquire := func(l *Locker, value string) Verdict {
			return l.Acquire(t.Context(), AcquireRequest{DB: 3, Key: []byte(key), Value: []byte(value), TTL: 20 * second}).Verdict
		}
		if v := acquire(w.locker, tokenA); v != Won {
			t.Fatal(v)
		}
		w.locker.Close(t.Context()) // nobody is left who remembers
		for _, m := range w.masters {
			delete(m.DBs, 3)
		}
		fresh := w.another(timelineConfig())
		for range 10 {
			if v := acquire(fresh, tokenB); v == Won {
				t.Fatal("a second client has the lock")
			}
			w.sleep(second)
		}
	})
}

// A client that asks for locks of a set in its first quarantine hears that the set is
// new, and what an operator can do.
func TestTimelineANewSetSaysThatItIsNew(t *testing.T) {
	cfg := timelineConfig()
	cfg.New = false
	newcomers(t, 5, cfg, func(w *timeline, l *Locker) {
		begun := time.Now()
		w.settle()
		until := l.Status().NewUntil
		if left := until.Sub(begun); left < 29*second || left > 33*second {
			t.Errorf("locks can be granted in %v", left)
		}
		o, _ := w.acquire(tokenA, second)
		if want := "; new set of masters: locks can be granted from " + until.UTC().Format(time.RFC3339) + "; start once with -new if no lock can be held on them yet"; !strings.HasSuffix(o.NoQuorumError(), want) {
			t.Errorf("%s does not end in %s", o.NoQuorumError(), want)
		}
		if other := w.another(cfg); true {
			w.settle()
			if got := other.Status().NewUntil; got.Sub(until).Abs() > second {
				t.Errorf("another process says %v", got)
			}
		}
		w.sleep(35 * second)
		w.mustAcquire(tokenA, second)
		w.forget(0, 1, 2, 3, 4)
		w.settle()
		w.wantStandings(l, "QQQQQ")
		o, _ = w.acquire(tokenB, second)
		if !l.Status().NewUntil.IsZero() || strings.Contains(o.NoQuorumError(), "new set") {
			t.Errorf("a set that has forgotten everything is new: %s", o.NoQuorumError())
		}
	})
}

// A process without New begins a set in quarantine, and a process with New ends that. In a
// set in which locks may have been granted, New ends nothing.
func TestTimelineTheOperatorCanSayLaterThatASetIsNew(t *testing.T) {
	cfg, told := timelineConfig(), timelineConfig()
	cfg.New, told.New = false, true
	newcomers(t, 5, cfg, func(w *timeline, l *Locker) {
		w.settle()
		w.wantStandings(l, "QQQQQ")
		other := w.another(told)
		w.settle()
		w.wantStandings(other, "CCCCC")
		w.wantStandings(l, "CCCCC")
		w.mustAcquire(tokenA, second)
		w.forget(0, 1, 2, 3, 4)
		w.settle()
		another := w.another(told)
		w.settle()
		w.wantStandings(another, "QQQQQ")
	})
	newcomers(t, 5, cfg, func(w *timeline, l *Locker) {
		w.sleep(40 * second)
		w.mustAcquire(tokenA, second)
		w.forget(0, 1, 2, 3, 4)
		w.settle()
		other := w.another(told)
		w.settle()
		w.wantStandings(other, "QQQQQ")
	})
	newcomers(t, 5, cfg, func(w *timeline, l *Locker) {
		w.settle()
		w.masters[0].Kill()
		w.settle()
		other, _ := w.dial("p2", told) // one master may know of a lock
		w.others = append(w.others, other)
		w.settle()
		if other.Status().Ready() {
			t.Error("a set is called new while a master is away")
		}
	})
}

func TestTimelineTheOperatorCanSayThatASetIsNew(t *testing.T) {
	cfg := timelineConfig()
	cfg.New = true
	newcomers(t, 5, cfg, func(w *timeline, l *Locker) {
		w.settle()
		w.mustAcquire(tokenA, second)
		w.forget(0, 1, 2, 3, 4)
		w.settle()
		if o, _ := w.acquire(tokenB, second); o.Verdict != NoQuorum {
			t.Errorf("that word counts for a set that exists: %+v", o)
		}
		other := w.another(cfg)
		w.settle()
		w.wantStandings(other, "QQQQQ")
	})
}

func TestTimelineANewSetNeedsAllItsMasters(t *testing.T) {
	cfg := timelineConfig()
	cfg.New = true
	newcomers(t, 5, cfg, func(w *timeline, l *Locker) {
		w.settle()
		w.wantStandings(l, "CCCCC")
	})
	inWorld(t, 5, func(t *testing.T, w *timeline) {
		w.masters[3].Kill()
		w.locker, w.links = w.dial("p", cfg)
		w.sleep(time.Minute)
		if status := w.locker.Status(); status.Set != "" || !strings.Contains(status.Reason, "m4 has not been reached") {
			t.Errorf("%+v", status)
		}
	})
}

func TestTimelineProcessesThatStartTogetherFormOneSet(t *testing.T) {
	cfg := timelineConfig()
	cfg.New = true
	newcomers(t, 5, cfg, func(w *timeline, l *Locker) {
		others := []*Locker{w.another(cfg), w.another(cfg)}
		w.settle()
		for _, other := range others {
			w.wantStandings(other, "CCCCC")
			if other.Status().Set != l.Status().Set {
				t.Errorf("sets %s and %s", l.Status().Set, other.Status().Set)
			}
		}
	})
}

func TestTimelineAMasterThatForgotDoesNotVoteUntilEveryLockHasEnded(t *testing.T) {
	for name, remembers := range map[string]bool{"empty": false, "with its data": true} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.mustAcquire(tokenA, time.Minute)
				began := time.Now()
				for i := range 3 {
					w.masters[i].Kill()
					w.masters[i].Restart(remembers)
					w.masters[i].Remove(key)
				}
				w.settle()
				o, _ := w.acquire(tokenB, 10*second)
				if o.Verdict != NoQuorum || o.Quarantined != 3 || o.Until.Before(began.Add(time.Minute)) {
					t.Errorf("%+v", o)
				}
				w.wantStandings(w.locker, "QQQCC")
				fresh := w.another(timelineConfig())
				w.settle()
				w.wantStandings(fresh, "QQQCC")
				w.sleep(time.Minute)
				w.wantStandings(w.locker, "CCCCC")
				w.wantStandings(fresh, "CCCCC")
				if o, _ := w.acquire(tokenB, 10*second); o.Verdict != Won {
					t.Errorf("after the quarantine: %+v", o)
				}
			})
		})
	}
}

func TestTimelineAFlushIsNoticedByTheVeryNextBatch(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 20*second)
		for i := range 3 {
			w.masters[i].Flush()
		}
		if o, _ := w.acquire(tokenB, 20*second); o.Verdict != NoQuorum {
			t.Errorf("a second client: %+v", o)
		}
		w.settle()
		w.wantStandings(w.locker, "QQQCC")
	})
}

func TestTimelineEveryDatabaseHasItsMarker(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		acquire := func(value string) Verdict {
			return w.locker.Acquire(context.Background(), AcquireRequest{DB: 3, Key: []byte(key), Value: []byte(value), TTL: 20 * second}).Verdict
		}
		if v := acquire(tokenA); v != Won {
			t.Fatal(v)
		}
		for _, m := range w.masters[:3] {
			delete(m.DBs, 3)
		}
		if v := acquire(tokenB); v != NoQuorum {
			t.Errorf("after FLUSHDB in database 3: %v", v)
		}
	})
}

// bareMajority: A holds the lock on m1, m2 and m3, and the others are free.
func bareMajority(t *testing.T, test func(t *testing.T, w *timeline)) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.put("A A A - -", 20*second)
		test(t, w)
	})
}

func TestTimelineALongerTTLIsOnRecordBeforeItIsGranted(t *testing.T) {
	longest := func(w *timeline, want time.Duration) {
		w.t.Helper()
		for i, m := range w.masters {
			marker, ok := marker.Parse(m.Value(marker.Key))
			if !ok || marker.Longest < want {
				w.t.Errorf("master %d: %v, want at least %v", i+1, marker.Longest, want)
			}
		}
	}
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 40*second)
		w.sleep(10 * time.Millisecond)
		longest(w, 40*second)
		o := w.locker.Extend(context.Background(), ExtendRequest{Key: []byte(key), TTL: 50 * second})
		if o.Verdict != Won {
			t.Fatalf("%+v", o)
		}
		w.sleep(10 * time.Millisecond)
		longest(w, 50*second)
		w.release()
		o = w.locker.Run(context.Background(), RunRequest{Keys: [][]byte{[]byte(key)}, Args: [][]byte{
			[]byte("EVAL"), []byte(takeIfFree), []byte("1"), []byte(key), []byte(tokenB), []byte("60000")}})
		if o.Verdict != Won || o.Lives > 60*second || o.Lives < 60*second-10*time.Millisecond {
			t.Fatalf("%+v", o)
		}
		longest(w, 60*second-10*time.Millisecond)
	})
}

func TestTimelineAMarkerOfOthersIsNeverOverwrittenAndNeverVotes(t *testing.T) {
	foreign := marker.Marker{Set: "another", Member: 3, Members: 5, Epoch: 1, Joined: []string{"1", "1", "1", "1", "1"}, Run: "m3-run-1"}.String()
	for name, text := range map[string]string{
		"another set":    foreign,
		"another number": "", // of the same set: see below
		"no marker":      "something else",
	} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				if text == "" {
					text = w.masters[1].Value(marker.Key)
				}
				w.masters[2].Put(marker.Key, text, 0)
				w.settle()
				w.wantStandings(w.locker, "CCBCC")
				if got := w.masters[2].Value(marker.Key); got != text {
					t.Errorf("the marker is now %q", got)
				}
				w.mustAcquire(tokenA, 10*second)
			})
		})
	}
}

// It cannot know of an earlier jump that another process is about to record.
func TestTimelineAProcessThatHasJustStartedWatchesTheClocksFirst(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		cfg := timelineConfig()
		cfg.New = false
		fresh, _ := w.dial("fresh", cfg)
		w.others = append(w.others, fresh)
		w.sleep(second)
		w.wantStandings(fresh, "UUUUU")
		w.settle()
		w.wantStandings(fresh, "CCCCC")
	})
}
