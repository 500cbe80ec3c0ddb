package redlock

import (
	"context"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
)

// Recognised scripts keep the rules of releases, and examined extensions theirs.

// extendIfMine is the script with which most clients extend a lock.
const extendIfMine = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("pexpire",KEYS[1],ARGV[2]) else return 0 end`

func TestTimelineARecognisedScriptIsNotExamined(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Minute)
		wantReply(t, w.eval(compareAndDelete, tokenA), ":1\r\n")
		w.elapse(0)
		w.wantHeard(0, "PTTL, compare-and-delete")
	})
}

func TestTimelineARecognisedReleaseKeepsTheReleaseRule(t *testing.T) {
	for _, row := range []struct {
		script, holds string
		verdict       Verdict
		reply         string
	}{
		{"ok ok ok ok ok", "A A A A A", Won, ":1\r\n"},
		{"ok ok ok kill kill", "A A A A A", Won, ":1\r\n"},
		{"ok ok ok kill kill", "A - - A A", Won, ":1\r\n"}, // 1 deletion and 2 missing
		{"ok ok ok kill kill", "- - - A A", Lost, ":0\r\n"},
		{"ok ok kill kill kill", "A A A A A", NoQuorum, ""},
		{"ok ok kill kill kill", "- - A A A", NoQuorum, ""},
		{"ok ok ok ok kill", "A - X - A", Lost, ":0\r\n"},
		{"ok ok ok ok kill", "A A - X A", Won, ":1\r\n"},
		{"ok ok ok ok ok", "- - X X B", Lost, ":0\r\n"},
		{"ok ok ok refuse refuse", "A A A A A", Won, ":1\r\n"},
		{"ok ok ok pause pause", "A A - A A", Won, ":1\r\n"},
		{"ok ok refuse refuse refuse", "A A A A A", NoQuorum, ""},
	} {
		t.Run(row.script+" holding "+row.holds, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.put(row.holds, time.Hour)
				if o := w.eval(compareAndDelete, tokenA); o.Verdict != row.verdict || string(o.Reply) != row.reply {
					t.Errorf("%v %q, want %v %q", o.Verdict, o.Reply, row.verdict, row.reply)
				}
			})
		})
	}
}

func TestTimelineARecognisedReleaseWithoutAQuorumTellsWhatItAttempted(t *testing.T) {
	for script, want := range map[string]string{"ok ok pause pause pause": key + " " + tokenA, "ok ok ok ok ok": ""} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.mustAcquire(tokenA, 10*second)
			w.elapse(0)
			w.play(script)
			o, got := w.eval(compareAndDelete, tokenA), ""
			for _, e := range o.Attempted {
				got += string(e.Key) + " " + string(e.Value)
			}
			if got != "" {
				t.Errorf("%s: attempted %q, though nobody asked", script, got)
			}
			request := RunRequest{Keys: [][]byte{[]byte(key)}, Effects: true,
				Args: [][]byte{[]byte("EVAL"), []byte(compareAndDelete), []byte("1"), []byte(key), []byte(tokenA)}}
			o = w.locker.Run(t.Context(), request)
			for _, e := range o.Attempted {
				got += string(e.Key) + " " + string(e.Value)
			}
			if got != want {
				t.Errorf("%s: attempted %q, want %q", script, got, want)
			}
		})
	}
}

func TestTimelineARecognisedReleaseThatReleasedNothingIsNotQueued(t *testing.T) {
	for _, value := range []string{tokenA, short} {
		q, cfg := &queuedNow{now: map[string]int{}}, timelineConfig()
		cfg.Observer = q
		onTimelineWith(t, cfg, "ok ok ok ok kill", func(t *testing.T, w *timeline) {
			w.put("X X X X -", time.Minute)
			w.masters[4].Put(key, value, time.Minute)
			w.elapse(0) // until the stream knows that its master is away
			if o := w.eval(compareAndDelete, value); o.Verdict != Lost {
				t.Fatal(o.Verdict)
			}
			w.elapse(second) // until the Observer has been told
			if _, most := q.of("m5"); most != 0 {
				t.Errorf("%d debts wait for the master that is away", most)
			}
			w.masters[4].Restart(true)
			w.elapse(5 * second)
			w.wantHeard(4, "")
		})
	}
}

// A master that could not serve the release gets it when the ballot is decided. By then it
// may have the next lock, with the same constant value.
func TestTimelineARecognisedReleaseThatIsToldAgainSparesALaterInstance(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(short, 10*second)
		w.elapse(0)
		w.masters[3].Put(key, foreign, time.Hour) // how long another lock lives does not matter
		w.play("ok@40ms ok@40ms ok@40ms ok@40ms refuse")
		w.After(20*time.Millisecond, func() {
			w.masters[4].Refuse("")
			w.masters[4].Put(key, short, time.Minute)
		})
		wantReply(t, w.eval(compareAndDelete, short), ":1\r\n")
		w.elapse(second)
		w.wantValues("- - - X 1")
		// Its copy of the released lock is deleted.
		w.put("1 1 1 1 1", 10*second)
		w.play("ok@40ms ok@40ms ok@40ms ok@40ms refuse")
		w.After(20*time.Millisecond, func() { w.masters[4].Refuse("") })
		wantReply(t, w.eval(compareAndDelete, short), ":1\r\n")
		w.elapse(second)
		w.wantValues("- - - - -")
	})
}

// A release never waits for a turn.
func TestTimelineARecognisedReleaseTakesNoTurn(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Minute)
		w.beginAcquire(tokenB, 10*second)
		w.sleep(time.Millisecond)
		began := time.Now()
		wantReply(t, w.eval(compareAndDelete, tokenA), ":1\r\n")
		if took := time.Since(began); took != 9*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// A script that is not recognised may release, too. That release also reaches the masters
// that missed the examined run.
func TestTimelineAnExaminedReleaseIsDeliveredToWhoMissedIt(t *testing.T) {
	for _, script := range []string{"ok ok ok kill kill", "ok ok ok lost lost", "ok ok ok cut cut"} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put("A A A A A", time.Minute)
			w.play(script)
			r := RunRequest{Keys: [][]byte{[]byte(key)}, Args: bytesOf([]string{"EVAL", compareAndDelete, "1", key, tokenA})}
			wantReply(t, w.locker.Run(t.Context(), unrecognised(r)), ":1\r\n")
			w.elapse(0)
			for _, m := range w.masters[3:] {
				m.Restart(true)
			}
			w.elapse(4 * second)
			w.wantValues("- - - - -")
		})
	}
}

func TestTimelineAScriptThatExtendsNeedsAQuorumAndValidity(t *testing.T) {
	for _, row := range []struct {
		script, holds, ttl string
		verdict            Verdict
		reply              string
	}{
		{"ok ok ok ok ok", "A A A B -", "10000", Won, ":1\r\n"},
		{"ok ok ok kill kill", "A A A A A", "10000", Won, ":1\r\n"},
		{"ok ok ok ok ok", "A A X X -", "10000", Lost, ":0\r\n"},
		{"ok ok ok kill kill", "- - - A A", "10000", Won, ":0\r\n"},
		{"ok ok ok kill kill", "A A - A A", "10000", NoQuorum, ""},
		{"ok@1ms ok@1ms ok@40ms pause pause", "A A A A A", "41", NoQuorum, ""},
		{"ok@1ms ok@1ms ok@40ms pause pause", "A A A A A", "90", Won, ":1\r\n"},
	} {
		t.Run(row.script+" holding "+row.holds, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.put(row.holds, time.Minute)
				if o := w.eval(extendIfMine, tokenA, row.ttl); o.Verdict != row.verdict || string(o.Reply) != row.reply {
					t.Errorf("%v %q, want %v %q", o.Verdict, o.Reply, row.verdict, row.reply)
				}
			})
		})
	}
}

func TestTimelineAScriptThatExtendsIsNeverUndone(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A X X -", time.Minute)
		if o := w.eval(extendIfMine, tokenA, "10000"); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.elapse(999 * time.Millisecond)
		w.wantTTLs(9*second, 9*second, 59*second, 59*second, -2)
	})
}

func TestTimelineAScriptThatExtendsReachesWhoMissedIt(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A B", 0)
		w.play("ok ok ok kill kill")
		wantReply(t, w.eval(extendIfMine, tokenA, "60000"), ":1\r\n")
		for _, m := range w.masters[3:] {
			m.Restart(true)
		}
		w.elapse(4 * second)
		if left := w.masters[3].TTL(key); left < 50*second || left > 56*second {
			t.Errorf("where it was missed, the lock lives for %v", left)
		}
		if left := w.masters[4].TTL(key); left != -1 {
			t.Errorf("another client's lock lives for %v", left)
		}
	})
}

// An extension waits for an acquire that is under way, because the acquire's votes would
// count for it.
func TestTimelineAScriptThatExtendsTakesItsTurn(t *testing.T) {
	// The acquire is still undecided when three masters have answered it.
	onTimeline(t, "ok ok no ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		w.beginAcquire(tokenA, 10*second)
		w.sleep(time.Millisecond)
		began := time.Now()
		wantReply(t, w.eval(extendIfMine, tokenA, "10000"), ":1\r\n")
		if took := time.Since(began); took != 17*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// A TTL that is longer than any before goes on the masters' record before it counts.
func TestTimelineAScriptThatExtendsIsOnRecord(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Minute)
		wantReply(t, w.eval(extendIfMine, tokenA, "300000"), ":1\r\n")
		w.elapse(0)
		for i, m := range w.masters {
			if marker, ok := marker.Parse(m.Value(marker.Key)); !ok || marker.Longest < 300*second {
				t.Errorf("master %d has %+v on record", i+1, marker)
			}
		}
	})
}

// Masters that have forgotten the script get it again, and are asked once more. Other
// masters may have deleted the lock in the first try, and find no lock in the second. If
// no master finds one then, nobody knows whether the client held it.
func TestTimelineARecognisedReleaseThatHadToBeLoadedIsNotToldThatItHeldNothing(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		release := func() Outcome {
			return w.locker.Run(t.Context(), RunRequest{
				Keys:    bytesOf([]string{key}),
				Args:    bytesOf([]string{"EVALSHA", sha1Of([]byte(compareAndDelete)), "1", key, tokenA}),
				Scripts: bytesOf([]string{compareAndDelete}),
			})
		}
		w.put("A A A A A", time.Minute)
		wantReply(t, release(), ":1\r\n")
		w.elapse(second)
		for _, row := range []struct {
			holds   string
			verdict Verdict
		}{{"A A - - A", NoQuorum}, {"- - A A A", Won}, {"A A A A A", Won}, {"X X X X X", Lost}} {
			w.play("ok ok ok@9ms ok@9ms kill")
			w.put(row.holds, time.Minute)
			clear(w.masters[2].Scripts)
			clear(w.masters[3].Scripts)
			if o := release(); o.Verdict != row.verdict {
				t.Errorf("%s: %v %q", row.holds, o.Verdict, o.Reply)
			}
			w.masters[4].Restart(true)
			w.elapse(5 * second)
		}
	})
}

// If the copies of a lock differ for good, they are mended, so that the client's next attempt finds a
// quorum.
func TestTimelineCopiesThatATransactionFindsDifferentAreMended(t *testing.T) {
	lock := bytesOf([]string{key})
	for name, try := range map[string]func(w *timeline) Outcome{
		"DEL": func(w *timeline) Outcome {
			return w.locker.Run(context.Background(), RunRequest{Keys: lock, Deletes: lock, Transaction: [][][]byte{bytesOf([]string{"DEL", key})}})
		},
		"WATCH": func(w *timeline) Outcome {
			watch, o := w.locker.Watch(context.Background(), 0, lock)
			if watch != nil {
				t.Error("copies that differ are watched")
			}
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.put("B A A B C", time.Minute)
				if o := try(w); !o.Split() {
					t.Errorf("%v %q", o.Verdict, o.Reply)
				}
				w.elapse(4 * second)
				w.wantValues("B B B B B")
			})
		})
	}
}

func TestTimelineATransactionThatDeletesGoesOutOnce(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Minute)
		lock := bytesOf([]string{key})
		r := RunRequest{Keys: lock, Deletes: lock, Transaction: [][][]byte{bytesOf([]string{"DEL", key})}}
		wantReply(t, w.locker.Run(t.Context(), r), "*1\r\n:1\r\n")
	})
}
