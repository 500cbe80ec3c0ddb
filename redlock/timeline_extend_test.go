package redlock

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Extensions: the EXPIRE family and PERSIST; and locks without TTL.

func (w *timeline) extend(ttl time.Duration) (Outcome, time.Duration) {
	began := time.Now()
	o := w.locker.Extend(context.Background(), ExtendRequest{Key: []byte(key), TTL: ttl})
	return o, time.Since(began)
}

// wantTTLs checks the key's TTL on each master: -1 for ever, -2 absent.
func (w *timeline) wantTTLs(want ...time.Duration) {
	w.t.Helper()
	for i, m := range w.masters {
		if got := m.ttl(key); got != want[i] {
			w.t.Errorf("on master %d the key lives for %v, want %v", i+1, got, want[i])
		}
	}
}

func TestTimelineAnExtensionNeedsAQuorumForOneValue(t *testing.T) {
	for _, row := range []struct {
		script, holds string
		verdict       Verdict
	}{
		{"ok ok ok ok ok", "A A A A A", Won},
		{"ok ok ok ok ok", "A A A - -", Won},
		{"ok ok ok ok ok", "A A A B C", Won},
		{"ok ok ok ok ok", "A A B B C", Lost},
		{"ok ok ok ok ok", "- - - A A", Lost},
		{"ok ok ok kill kill", "A A A A A", Won},
		{"ok ok ok kill kill", "A A - A A", NoQuorum},
		{"ok ok ok kill kill", "- - - A A", Lost},
		{"ok ok refuse pause kill", "A A A A A", NoQuorum},
	} {
		t.Run(row.script+" holding "+row.holds, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.put(row.holds, time.Minute)
				if o, _ := w.extend(10 * second); o.Verdict != row.verdict {
					t.Errorf("%v, want %v", o.Verdict, row.verdict)
				}
			})
		})
	}
}

func TestTimelineAnExtensionNeedsValidity(t *testing.T) {
	onTimeline(t, "ok@1ms ok@1ms ok@40ms pause pause", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Minute)
		o, took := w.extend(41 * time.Millisecond)
		w.wantVerdict(o, took, Lost, 40*time.Millisecond)
		o, took = w.extend(60 * time.Millisecond)
		w.wantVerdict(o, took, Won, 40*time.Millisecond)
	})
}

func TestTimelineAChangedTTLIsNeverUndone(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A B C -", time.Minute)
		if o, _ := w.extend(10 * second); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.elapse(999 * time.Millisecond)
		w.wantTTLs(9*second, 9*second, 9*second, 9*second, -2)
	})
}

func TestTimelineAnExpiryThatAMasterMissedIsDeliveredByValue(t *testing.T) {
	for _, script := range []string{"ok ok ok kill kill", "ok ok ok lost lost", "ok ok ok cut cut", "ok ok ok refuse refuse"} {
		t.Run(script, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.put("A A A A B", 0)
				w.play(script)
				if o, _ := w.extend(60 * second); o.Verdict != Won {
					t.Fatal(o.Verdict)
				}
				w.elapse(0)
				for _, m := range w.masters[3:] {
					m.refuse("")
					m.restart(true)
				}
				w.elapse(4 * second)
				w.locker.Get(context.Background(), 0, []byte(key))
				w.elapse(0)
				if left := w.masters[3].ttl(key); left < 50*second || left > 56*second {
					t.Errorf("where it was missed, the lock lives for %v", left)
				}
				if script == "ok ok ok cut cut" {
					return // these masters executed the EXPIRE
				}
				if left := w.masters[4].ttl(key); left != -1 {
					t.Errorf("another client's lock lives for %v", left)
				}
			})
		})
	}
}

func TestTimelineAMissedExpiryDoesNotShortenANewerOne(t *testing.T) {
	onTimeline(t, "ok ok ok ok refuse", func(t *testing.T, w *timeline) {
		w.put("A A A A A", second)
		if o, _ := w.extend(2 * second); o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
		w.elapse(0)
		w.masters[4].refuse("")
		if o, _ := w.extend(60 * second); o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
		w.elapse(0)
		if left := w.masters[4].ttl(key); left < 59*second {
			t.Errorf("a newer extension was cut to %v", left)
		}
	})
}

func TestTimelineAnExtensionCountsOnlyTheHoldersOwnVotes(t *testing.T) {
	onTimeline(t, "ok ok ok@20ms ok@20ms refuse", func(t *testing.T, w *timeline) {
		// One client holds the constant value on masters 1, 2 and 5; another's try
		// is granted on 3 and 4 and about to be undone when the first extends.
		w.put("1 1 - - 1", 200*time.Millisecond)
		w.beginAcquire(short, 200*time.Millisecond)
		w.sleep(500 * time.Microsecond)
		o, _ := w.extend(second)
		w.elapse(300 * time.Millisecond)
		held := 0
		for _, m := range w.masters {
			if m.value(key) == short {
				held++
			}
		}
		if o.Verdict == Won && held < 3 {
			t.Errorf("extended by a second, and 300 ms later %d masters hold the lock", held)
			w.dump()
		}
	})
}

// A lock was taken without TTL, and gets one while a master is away until the lock has ended. Its copy
// there would live for ever. But a short value may be that of a later lock.
func TestTimelineACopyWithoutTTLEndsWhenItsMasterIsBack(t *testing.T) {
	extend := func(w *timeline) Outcome { o, _ := w.extend(10 * second); return o }
	script := func(w *timeline) Outcome {
		return w.locker.Run(context.Background(), RunRequest{Keys: bytesOf([]string{key}), Transaction: [][][]byte{bytesOf([]string{"PEXPIRE", key, "10000"})}})
	}
	for name, give := range map[string]func(w *timeline) Outcome{"PEXPIRE": extend, "MULTI": script} {
		for holds, after := range map[string]string{"A A A A A": "- - - - -", "1 1 1 1 1": "- - - - 1"} {
			t.Run(name+" "+holds, func(t *testing.T) {
				onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
					w.put(holds, 0)
					w.play("ok ok ok ok kill")
					if o := give(w); o.Verdict != Won {
						t.Errorf("%+v", o)
					}
					w.elapse(20 * second)
					w.masters[4].restart(true)
					w.elapse(5 * second)
					w.wantValues(after)
				})
			})
		}
	}
}

// An extension that was won is asked for once.
func TestTimelineAnExtensionIsNotRepeated(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3}
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", 10*second)
		o, took := w.extend(20 * second)
		w.wantVerdict(o, took, Won, time.Millisecond)
		w.wantHeard(0, "GET, PTTL, PEXPIRE")
	})
}

// A master that failed gets no expiry that nobody won.
func TestTimelineAnExpiryThatWasNotWonIsNotDelivered(t *testing.T) {
	onTimeline(t, "ok ok ok ok lost", func(t *testing.T, w *timeline) {
		w.put("A A B C A", 10*second)
		if o, _ := w.extend(60 * second); o.Verdict != NoQuorum {
			t.Fatal(o.Verdict)
		}
		w.elapse(second)
		if left := w.masters[4].ttl(key); left > 9*second {
			t.Errorf("where the extension was missed, the lock lives for %v", left)
		}
	})
}

// A master whose copy does not meet the condition has not missed the expiry.
func TestTimelineACopyThatDoesNotMeetTheConditionIsNotExtended(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A - -", 90*second)
		w.put("- - - A A", 10*second)
		if o := w.locker.Extend(t.Context(), ExtendRequest{Key: []byte(key), TTL: 50 * second, Condition: "LT"}); o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
		w.elapse(999 * time.Millisecond)
		w.wantTTLs(49*second, 49*second, 49*second, 9*second, 9*second)
	})
}

// A master whose answer to a PERSIST was lost keeps its copy.
func TestTimelineAPersistDeliversNoExpiry(t *testing.T) {
	onTimeline(t, "ok ok ok ok cut", func(t *testing.T, w *timeline) {
		w.put("A A A A A", 10*second)
		if o := w.locker.Extend(t.Context(), ExtendRequest{Key: []byte(key), Persist: true}); o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
		w.elapse(5 * second)
		w.wantTTLs(-1, -1, -1, -1, -1)
	})
}

// An acquire has come to nothing, and the masters that granted it are slow to say so. What they
// granted is about to be undone, and extends nothing.
func TestTimelineAnExtensionDoesNotCountVotesThatAreAboutToBeUndone(t *testing.T) {
	onTimeline(t, "ok ok ok@80ms ok@80ms ok@80ms", func(t *testing.T, w *timeline) {
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != NoQuorum {
			t.Fatal(o.Verdict)
		}
		w.play("ok ok ok ok ok")
		if o, _ := w.extend(10 * second); o.Verdict == Won {
			t.Error("it was extended")
		}
		w.elapse(0)
		w.wantValues("- - - - -")
	})
}

// Another client's acquire waits for slow masters until its time is over. The extension waits for the
// acquire, and then for the masters.
func TestTimelineAnExtensionTakesItsTurn(t *testing.T) {
	onTimeline(t, "ok ok ok@80ms ok@80ms ok@80ms", func(t *testing.T, w *timeline) {
		w.put("A A A A A", 10*second)
		other := w.beginAcquire(tokenB, 10*second)
		w.sleep(time.Millisecond / 2)
		w.play("ok ok ok ok ok")
		if o, _ := w.extend(10 * second); o.Verdict != Won {
			t.Errorf("%v", o.Verdict)
		}
		other()
	})
}

func TestTimelineAConditionIsTheMastersToJudge(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", 60*second)
		extend := func(ttl time.Duration, condition string) Outcome {
			return w.locker.Extend(context.Background(), ExtendRequest{Key: []byte(key), TTL: ttl, Condition: condition})
		}
		for _, row := range []struct {
			condition string
			ttl       time.Duration
			verdict   Verdict
		}{{"NX", 90 * second, Lost}, {"GT", 30 * second, Lost}, {"GT", 90 * second, Won}, {"LT", 90 * second, Lost}, {"XX", 10 * second, Won}} {
			if o := extend(row.ttl, row.condition); o.Verdict != row.verdict || o.Err != "" {
				t.Errorf("%s %v: %v %s", row.condition, row.ttl, o.Verdict, o.Err)
			}
		}
		if o := extend(second, "QX"); o.Err != "ERR Unsupported option QX" {
			t.Errorf("%v %q", o.Verdict, o.Err)
		}
	})
}

func TestTimelineALockWithoutTTLIsPermanentOnlyOnceItIsWon(t *testing.T) {
	onTimeline(t, "ok ok ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		w.beginAcquire(tokenA, 0)
		w.sleep(5 * time.Millisecond)
		w.wantTTLs(29995*time.Millisecond, 29995*time.Millisecond, 29995*time.Millisecond, 29995*time.Millisecond, 29995*time.Millisecond)
		w.elapse(0)
		w.wantTTLs(-1, -1, -1, -1, -1)
	})
	onTimeline(t, "ok ok no no no", func(t *testing.T, w *timeline) {
		if o, _ := w.acquire(tokenA, 0); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.elapse(0)
		w.wantValues("- - X X X")
		for i := range w.masters {
			if w.heardValue(i, "EVAL persist.lua", tokenA) > 0 {
				t.Errorf("master %d was told to keep what was not won", i+1)
			}
		}
	})
}

// The question that makes it permanent is as large as the one that took it, and comes before that one is settled.
func TestTimelineALargeLockWithoutTTLIsWon(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for range 2 {
			value := strings.Repeat("v", 64<<10)
			w.mustAcquire(value, 0) // else it waits for itself
			w.wantTTLs(-1, -1, -1, -1, -1)
			w.locker.Release(context.Background(), ReleaseRequest{Key: []byte(key), Value: []byte(value)})
			w.elapse(second)
		}
	})
}

func TestTimelineAStrayCopyOfALockWithoutTTLIsNotForEver(t *testing.T) {
	onTimeline(t, "ok@1ms cut@5ms no no no", func(t *testing.T, w *timeline) {
		if o, _ := w.acquire(short, 0); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.elapse(second)
		w.wantValues("- 1 X X X")
		w.elapse(30 * second)
		if v := w.masters[1].value(key); v == short {
			t.Error("it is still there") // gone, or made equal to what a quorum has
		}
	})
}

func TestTimelineALockThatCannotBeMadePermanentIsNotWon(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for _, m := range w.masters[2:] {
			w.After(500*time.Microsecond, func() { m.refuse("BUSY") })
			w.After(100*time.Millisecond, func() { m.refuse("") })
		}
		if o, _ := w.acquire(tokenA, 0); o.Verdict == Won {
			t.Errorf("%v", o.Verdict)
		}
		w.elapse(0)
		w.locker.Get(context.Background(), 0, []byte(key))
		w.elapse(0)
		w.wantValues("- - - - -")
	})
}
