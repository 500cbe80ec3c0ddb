package redlock

import (
	"context"
	"strings"
	"testing"
	"time"
)

// Releases: DEL, UNLINK and GETDEL as two ballots.

func TestTimelineAReleaseDeletesOnlyWhatAQuorumHolds(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A B C", time.Hour)
		o, took := w.release()
		w.wantVerdict(o, took, Won, 2*time.Millisecond)
		if string(o.Value) != tokenA {
			t.Errorf("deleted %q", o.Value)
		}
		w.elapse(0)
		w.wantValues("- - - B C")
	})
}

func TestTimelineAReleaseSparesAClientThatIsJustAcquiring(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A - - -", time.Hour)
		o, took := w.release()
		w.wantVerdict(o, took, Lost, time.Millisecond)
		w.elapse(0)
		w.wantValues("A A - - -")
	})
}

func TestTimelineADELWithoutAQuorumOfAnswersDeletesNothing(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A - - -", time.Hour)
		w.play("ok ok pause pause pause")
		if o, _ := w.release(); o.Verdict != NoQuorum {
			t.Fatal(o.Verdict)
		}
		w.wantValues("A A - - -")
	})
}

func TestTimelineGETDELAnswersWhatItDeletes(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Hour)
		if o := w.locker.Release(t.Context(), ReleaseRequest{Key: []byte(key), Get: true}); o.Verdict != Won || string(o.Value) != tokenA {
			t.Errorf("%v %q", o.Verdict, o.Value)
		}
		w.elapse(0)
		w.wantValues("- - - - -")
	})
}

func TestTimelineGETDELLeavesAKeyThatIsNoString(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for _, m := range w.masters {
			m.store(0, []byte(key), entry{value: tokenA, isList: true})
		}
		if o := w.locker.Release(t.Context(), ReleaseRequest{Key: []byte(key), Get: true}); o.Verdict != Won || o.Err != wrongType {
			t.Errorf("%+v", o)
		}
		w.elapse(0)
		w.wantValues("A A A A A")
	})
}

func TestTimelineNoMasterIsEverToldABareDEL(t *testing.T) {
	for _, script := range []string{"ok ok ok ok ok", "ok ok ok ok kill", "ok ok ok ok cut", "ok ok ok ok lost", "ok ok ok refuse pause"} {
		t.Run(script, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.mustAcquire(tokenA, 10*second)
				w.elapse(0)
				w.play(script)
				if o, _ := w.release(); o.Verdict != Won {
					t.Errorf("%v", o.Verdict)
				}
				for _, m := range w.masters {
					m.resume()
					m.refuse("")
				}
				w.masters[4].restart(true)
				w.elapse(5 * second)
				// An answer of the master that could not serve lets its debts go out.
				w.locker.Get(context.Background(), 0, []byte(key))
				w.elapse(second)
				w.wantValues("- - - - -")
				for i := range w.masters {
					if heard := w.heard(i); strings.Contains(heard, "DEL") || strings.Contains(heard, "UNLINK") {
						t.Errorf("master %d heard %s", i+1, heard)
					}
				}
			})
		})
	}
}

// byEachRelease tells a story twice: the holder releases by DEL, and by a script that is
// recognised.
func byEachRelease(t *testing.T, story func(t *testing.T, release func(w *timeline, value string) Outcome)) {
	t.Run("by DEL", func(t *testing.T) {
		story(t, func(w *timeline, _ string) Outcome { return byDEL(w.locker) })
	})
	t.Run("by script", func(t *testing.T) {
		story(t, func(w *timeline, value string) Outcome { return w.eval(compareAndDelete, value) })
	})
}

func TestTimelineReleaseRule(t *testing.T) {
	for _, row := range []struct {
		script, holds string
		verdict       Verdict
	}{
		{"ok ok ok ok ok", "A A A A A", Won},
		{"ok ok ok kill kill", "A A A A A", Won},
		{"ok ok ok kill kill", "A - - A A", Won},        // 1 deletion and 2 missing
		{"ok ok ok kill kill", "- - - A A", Lost},       // no deletion can come to 3
		{"ok ok kill kill kill", "A A A A A", NoQuorum}, // too few answers
		{"ok ok kill kill kill", "- - A A A", NoQuorum},
		{"ok ok ok ok kill", "A - - - A", Lost},
		{"ok ok ok ok kill", "A A - - A", Won},
		{"ok ok ok ok ok", "- - - - -", Lost},
		{"kill kill kill kill kill", "A A A A A", NoQuorum},
		{"ok ok ok refuse refuse", "A A A A A", Won},
		{"ok ok ok pause pause", "A A - A A", Won},
		{"ok ok refuse refuse refuse", "A A A A A", NoQuorum},
	} {
		t.Run(row.script+" holding "+row.holds, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.put(row.holds, time.Hour)
				if o, _ := w.release(); o.Verdict != row.verdict {
					t.Errorf("%v, want %v", o.Verdict, row.verdict)
				}
			})
		})
	}
}

func TestTimelineAMasterThatMissedAReleaseIsToldOfIt(t *testing.T) {
	scripts := []string{"ok ok ok ok kill", "ok ok ok ok lost", "ok ok ok ok cut", "ok ok ok ok pause", "ok ok ok ok refuse",
		// It is back before anybody knows how long the lock lives.
		"ok@40ms ok@40ms ok@40ms ok@40ms lost@1ms"}
	byEachRelease(t, func(t *testing.T, release func(w *timeline, value string) Outcome) {
		for _, script := range scripts {
			for _, value := range []string{tokenA, short} {
				t.Run(script, func(t *testing.T) {
					onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
						w.mustAcquire(value, 60*second)
						w.elapse(0)
						w.play(script)
						if o := release(w, value); o.Verdict != Won {
							t.Fatalf("%v", o.Verdict)
						}
						w.elapse(second)
						w.masters[4].resume()
						w.masters[4].refuse("")
						if !strings.HasSuffix(script, "refuse") && !strings.HasSuffix(script, "lost@1ms") {
							w.masters[4].restart(true)
						}
						w.elapse(5 * second)
						w.wantValues("- - - - -")
					})
				})
			}
		}
	})
}

func TestTimelineAQueuedReleaseSparesALaterInstance(t *testing.T) {
	byEachRelease(t, func(t *testing.T, release func(w *timeline, value string) Outcome) {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.mustAcquire(short, 10*second)
			w.play("ok ok ok ok kill")
			if o := release(w, short); o.Verdict != Won {
				t.Fatalf("%v", o.Verdict)
			}
			// Another client with the same constant value comes past this proxy.
			w.elapse(second)
			w.put("- - - - 1", 10*second)
			w.masters[4].restart(true)
			w.elapse(3 * second)
			w.wantValues("- - - - 1")
			w.wantHeard(4, "SET, release.lua")
		})
	})
}

func TestTimelineAQueuedReleaseIsDroppedWithItsTTL(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 2*second)
		w.play("ok ok ok ok kill")
		if o, _ := w.release(); o.Verdict != Won {
			t.Fatalf("%v", o.Verdict)
		}
		w.elapse(10 * second)
		w.masters[4].restart(true)
		w.elapse(5 * second)
		w.wantHeard(4, "SET")
	})
}

func TestTimelineAReleaseIsKeptPastTheTTLWhileAnEarlierWriteIsUnanswered(t *testing.T) {
	onTimeline(t, "ok ok ok ok pause", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, second)
		w.release()
		w.elapse(5 * second)
		// The stopped master executes the SET now, with a full TTL.
		w.masters[4].resume()
		w.elapse(0)
		w.wantValues("- - - - -")
	})
	byEachRelease(t, func(t *testing.T, release func(w *timeline, value string) Outcome) {
		onTimeline(t, "ok ok ok ok pause", func(t *testing.T, w *timeline) {
			w.mustAcquire(tokenA, 2*second)
			if o := release(w, tokenA); o.Verdict != Won {
				t.Fatalf("%v", o.Verdict)
			}
			w.links[4].cut()
			w.elapse(1500 * time.Millisecond)
			// Now it serves the old connection before the new one.
			w.masters[4].resumeNewestFirst(-50 * time.Millisecond)
			w.elapse(second)
			w.wantValues("- - - - -")
		})
	})
}

// The network swallows the release behind a SET that master 5 executes late, with
// a full TTL: what it holds then outlives what the others released.
func TestTimelineAReleaseReachesTheCopyOfAnUnansweredWrite(t *testing.T) {
	onTimeline(t, "ok ok ok ok pause", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 10*second)
		w.elapse(second)
		w.links[4].abandon()
		if o, _ := w.release(); o.Verdict != Won {
			t.Fatalf("%v", o.Verdict)
		}
		w.masters[4].resume()
		w.elapse(second / 10)
		w.wantValues("- - - - A")
		w.elapse(2 * second) // the next beat notices that the connection must be dialled anew
		w.wantValues("- - - - -")
	})
}

// Master 5 is busy from the acquire to the release. It serves again when the next client
// takes the lock with the same constant value.
func TestTimelineAReleaseThatAMasterCouldNotServeSparesTheNextHolder(t *testing.T) {
	byEachRelease(t, func(t *testing.T, release func(w *timeline, value string) Outcome) {
		for _, ttl := range []time.Duration{0, 10 * second} {
			t.Run(ttl.String(), func(t *testing.T) {
				onTimeline(t, "ok ok ok ok refuse", func(t *testing.T, w *timeline) {
					w.mustAcquire(short, ttl)
					w.elapse(0)
					if o := release(w, short); o.Verdict != Won {
						t.Fatalf("%v", o.Verdict)
					}
					w.elapse(0)
					w.masters[4].refuse("")
					w.mustAcquire(short, second)
					w.elapse(0)
					if w.heardValue(4, "SET", short) == 2 {
						w.wantValues("1 1 1 1 1")
					}
				})
			})
		}
	})
}

func TestTimelineTheLatestExpiryCountsForAQueuedRelease(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for i, ttl := range []time.Duration{5 * second, 6 * second, 7 * second, 8 * second, 8 * second} {
			w.masters[i].put(key, tokenA, ttl)
		}
		w.play("ok ok ok ok kill")
		if o, _ := w.release(); o.Verdict != Won {
			t.Fatalf("%v", o.Verdict)
		}
		w.masters[4].restart(true)
		w.elapse(3 * second)
		w.wantValues("- - - - -")
	})
}

func TestTimelineALockIsReleasedThroughAnotherProxy(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		other := w.another(timelineConfig())
		w.mustAcquire(tokenA, 10*second)
		w.elapse(0)
		if o := other.Release(context.Background(), ReleaseRequest{Key: []byte(key)}); o.Verdict != Won || string(o.Value) != tokenA {
			t.Errorf("%v %q", o.Verdict, o.Value)
		}
		w.elapse(0)
		w.wantValues("- - - - -")
		w.mustAcquire(tokenB, 10*second)
	})
}

// The fifth master hangs. With its vote each of the two values could be the lock, so nothing is deleted
// until it answers.
func TestTimelineADELDoesNotGuessWhichValueHasAQuorum(t *testing.T) {
	for _, row := range []struct{ holds, others string }{
		{"A A B B A", "- - B B -"}, {"A A B B B", "A A - - -"}, {"B A A B A", "B - - B -"},
	} {
		t.Run(row.holds, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.put(row.holds, 0)
				w.play("ok ok ok ok pause")
				if o, took := w.release(); o.Verdict != NoQuorum || took > second {
					t.Errorf("%+v after %v", o, took)
				}
				w.wantValues(row.holds)
				w.masters[4].resume()
				w.elapse(second)
				if o, _ := w.release(); o.Verdict != Won {
					t.Errorf("%+v", o)
				}
				w.elapse(0)
				w.wantValues(row.others)
			})
		})
	}
}
