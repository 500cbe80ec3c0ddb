package redlock

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// The published algorithm, with a test for each sentence, and what doc.go adds to it.

func TestTimelineAcquireAsksAllMastersAtTheSameMoment(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		began := time.Now()
		w.mustAcquire(tokenA, 10*second)
		w.wantValues("A A A A A")
		asked := 0
		for _, x := range w.executions() {
			if string(x.args[0]) != "SET" {
				continue
			}
			asked++
			if !x.at.Equal(began) || summary(x.args) != "SET "+key+" "+tokenA+" NX PX 10000" {
				t.Errorf("after %v: %v", x.at.Sub(began), x)
			}
		}
		if asked != 5 {
			t.Errorf("%d masters were asked", asked)
		}
	})
}

func TestTimelineMajorityWins(t *testing.T) {
	for _, row := range []struct {
		script  string
		verdict Verdict
		after   time.Duration
	}{
		{"ok@1ms ok@2ms ok@3ms ok@4ms ok@5ms", Won, 3 * time.Millisecond},
		{"ok@1ms ok@2ms ok@9ms no@4ms no@5ms", Won, 9 * time.Millisecond},
		{"ok@1ms ok@2ms no@3ms no@4ms no@5ms", Lost, 5 * time.Millisecond},
		{"no@1ms no@2ms no@3ms no@4ms no@5ms", Lost, 3 * time.Millisecond},
		{"ok@1ms ok@2ms no@9ms", Won, 2 * time.Millisecond},
		{"ok@1ms no@2ms no@9ms", Lost, 9 * time.Millisecond},
		{"ok@7ms", Won, 7 * time.Millisecond},
		{"no@7ms", Lost, 7 * time.Millisecond},
		{"ok@1ms ok@2ms ok@3ms ok@4ms no@5ms no@6ms no@7ms", Won, 4 * time.Millisecond},
	} {
		t.Run(row.script, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				o, took := w.acquire(tokenA, 10*second)
				w.wantVerdict(o, took, row.verdict, row.after)
			})
		})
	}
}

func TestTimelineAHungMasterSlowsNobody(t *testing.T) {
	for _, script := range []string{
		"ok@5ms ok@5ms ok@5ms pause pause", "ok@5ms ok@5ms ok@5ms mute mute",
		"ok@5ms ok@5ms ok@5ms kill kill", "ok@5ms ok@5ms ok@5ms ok@49ms ok@80ms",
	} {
		t.Run(script, func(t *testing.T) {
			onTimeline(t, script, func(t *testing.T, w *timeline) {
				o, took := w.acquire(tokenA, 10*second)
				w.wantVerdict(o, took, Won, 5*time.Millisecond)
			})
		})
	}
}

func TestTimelineTheMasterTimeoutEndsABallot(t *testing.T) {
	onTimeline(t, "ok@5ms ok@5ms pause pause pause", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, NoQuorum, timeout)
		if o.Answered != 2 || o.NoQuorumError() != "QUORUMLOST 2 of 5 lock masters can vote, 3 needed" {
			t.Errorf("%s", o.NoQuorumError())
		}
	})
}

func TestTimelineNobodyCanKnowIsNotHeldBySomeone(t *testing.T) {
	for _, script := range []string{
		"no@1ms no@1ms pause pause pause", "no@1ms no@1ms refuse refuse refuse", "no ok refuse pause kill", "refuse refuse refuse refuse refuse",
	} {
		t.Run(script, func(t *testing.T) {
			onTimeline(t, script, func(t *testing.T, w *timeline) {
				if o, _ := w.acquire(tokenA, 10*second); o.Verdict != NoQuorum {
					t.Errorf("%v", o.Verdict)
				}
			})
		})
	}
}

func TestTimelineValidityIsTTLMinusElapsedMinusDrift(t *testing.T) {
	for _, row := range []struct {
		ttl     time.Duration
		verdict Verdict
	}{
		// 40 ms elapse, and 2 ms and 1 % of the TTL are the drift.
		{42 * time.Millisecond, Lost},
		{43 * time.Millisecond, Won},
		{41 * time.Millisecond, Lost},
		{20 * time.Millisecond, Lost},
		{50 * time.Millisecond, Won},
	} {
		t.Run(row.ttl.String(), func(t *testing.T) {
			onTimeline(t, "ok@1ms ok@1ms ok@40ms pause pause", func(t *testing.T, w *timeline) {
				o, _ := w.acquire(tokenA, row.ttl)
				if o.Verdict != row.verdict {
					t.Errorf("%v, want %v", o.Verdict, row.verdict)
				}
			})
		})
	}
}

func TestTimelineAFailedAcquireUnlocksEverywhere(t *testing.T) {
	for _, row := range []struct {
		script string
		after  string
	}{
		{"ok@1ms ok@2ms no@3ms no@4ms no@5ms", "- - X X X"},
		{"ok@1ms ok@2ms no@3ms no@4ms ok@80ms", "- - X X -"},
		{"ok@1ms ok@2ms refuse refuse refuse", "- - - - -"},
		{"no no no ok@20ms ok@30ms", "X X X - -"},
	} {
		t.Run(row.script, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				if o, _ := w.acquire(tokenA, 10*second); o.Verdict == Won {
					t.Fatalf("%+v", o)
				}
				w.elapse(0)
				w.wantValues(row.after)
			})
		})
	}
}

func TestTimelineASplitVoteIsRetriedAfterARandomDelay(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3, Delay: 200 * time.Millisecond}
	onTimelineWith(t, cfg, "ok@1ms ok@1ms ok@2ms ok@2ms ok@2ms", func(t *testing.T, w *timeline) {
		// Nobody has a quorum, so a single Redis would have had a winner.
		w.put("- - X B B", time.Hour)
		o, took := w.acquire(tokenA, 10*second)
		if o.Verdict != Lost || took > 3*cfg.Retry.Delay+16*time.Millisecond {
			t.Errorf("%v after %v", o.Verdict, took)
		}
		var tries []time.Time
		for _, x := range w.executions() {
			if x.master == "m1" && string(x.args[0]) == "SET" {
				tries = append(tries, x.at)
			}
		}
		if len(tries) != 4 {
			t.Fatalf("%d tries", len(tries))
		}
		waits := map[time.Duration]bool{}
		for i := range tries[1:] {
			wait := tries[i+1].Sub(tries[i])
			waits[wait] = true
			if wait > cfg.Retry.Delay+4*time.Millisecond {
				t.Errorf("waited %v", wait)
			}
		}
		if len(waits) != 3 {
			t.Errorf("the waits are not random: %v", waits)
		}
	})
}

func TestTimelineASplitVoteIsWonOnceTheOthersAreGone(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 20, Delay: 20 * time.Millisecond}
	onTimelineWith(t, cfg, "ok@2ms ok@2ms ok@2ms ok@1ms ok@1ms", func(t *testing.T, w *timeline) {
		w.put("B B C - -", 30*time.Millisecond)
		w.mustAcquire(tokenA, 10*second)
	})
}

func TestTimelineHeldByABareMajorityIsNotRetried(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3, Delay: 200 * time.Millisecond}
	onTimelineWith(t, cfg, "ok@1ms ok@1ms no@2ms no@2ms no@2ms", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, Lost, 4*time.Millisecond)
		w.elapse(second)
		w.wantHeard(0, "SET, release.lua, GETRANGE, PTTL")
		w.wantHeard(4, "SET, GETRANGE, PTTL")
	})
}

func TestTimelineARefusalAnswersAllThatWaitedForIt(t *testing.T) {
	onTimeline(t, "no no no no no", func(t *testing.T, w *timeline) {
		waiting := w.crew()
		for i := range 50 {
			waiting.Go(func() {
				if o, _ := w.acquire(fmt.Sprintf("client number %d's own token", i), second); o.Verdict != Lost {
					t.Errorf("%v", o.Verdict)
				}
			})
		}
		waiting.Wait()
		asked := 0
		for _, x := range w.executions() {
			if x.master == "m1" && string(x.args[0]) == "SET" {
				asked++
			}
		}
		// Requests that come before the first one asks share its answer. All others are
		// there when the second one asks.
		if asked > 2 {
			t.Errorf("%d ballots for 50 clients", asked)
		}
	})
}

func TestTimelineARefusalDoesNotAnswerThoseThatCameLater(t *testing.T) {
	onTimeline(t, "no@10ms no@10ms no@10ms no@10ms no@10ms", func(t *testing.T, w *timeline) {
		first := w.crew()
		first.Go(func() {
			if o, _ := w.acquire(tokenA, second); o.Verdict != Lost {
				t.Errorf("first: %v", o.Verdict)
			}
		})
		w.sleep(5 * time.Millisecond) // the masters have refused, and their answers are on the way
		for _, m := range w.masters {
			m.remove(key)
		}
		if o, _ := w.acquire(tokenB, second); o.Verdict != Won {
			t.Errorf("second: %v", o.Verdict)
		}
		first.Wait()
	})
}

func TestTimelineLostWithNoGrantIsAnsweredAtOnce(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3, Delay: 200 * time.Millisecond}
	onTimelineWith(t, cfg, "no@3ms no@3ms no@3ms no@3ms pause", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, Lost, 3*time.Millisecond)
		w.elapse(second)
		w.wantHeard(0, "SET")
	})
}

func TestTimelineAClientThatHasGoneIsNotRetriedAndHoldsNothing(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3, Delay: 200 * time.Millisecond}
	for _, script := range []string{"ok@5ms ok@5ms ok@5ms ok@5ms ok@5ms", "ok@1ms ok@2ms ok@9ms ok@9ms ok@12ms", "ok@9ms ok@9ms no no pause"} {
		t.Run(script, func(t *testing.T) {
			onTimelineWith(t, cfg, script, func(t *testing.T, w *timeline) {
				ctx := w.goneAfter(4 * time.Millisecond)
				o := w.locker.Acquire(ctx, AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: 10 * second})
				if o.Verdict != NoQuorum {
					t.Errorf("a client that has gone hears %v", o.Verdict)
				}
				w.elapse(second)
				for i, m := range w.masters {
					if m.value(key) == tokenA {
						t.Errorf("master %d still holds its lock", i+1)
					}
				}
			})
		})
	}
}

// A client that has closed its side may still read. What was not tried is neither refused nor
// granted, whatever the key holds.
func TestTimelineWhatIsNotTriedForAClientThatSendsNoMoreIsUnknown(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		k := []byte(key)
		for name, o := range map[string]Outcome{
			"acquire":     w.locker.Acquire(gone, AcquireRequest{Key: k, Value: []byte(tokenA), TTL: 10 * second}),
			"acquire GET": w.locker.Acquire(gone, AcquireRequest{Key: k, Value: []byte(tokenA), TTL: 10 * second, Get: true}),
			"extend":      w.locker.Extend(gone, ExtendRequest{Key: k, TTL: 10 * second}),
			"run":         w.locker.Run(gone, RunRequest{Keys: [][]byte{k}, Args: bytesOf([]string{"HSET", key, "f", "v"})}),
			"token":       w.locker.Token(gone, TokenRequest{Key: k, Value: []byte(tokenA)}),
		} {
			if o.Verdict != NoQuorum || o.Split() || o.NoQuorumError() != "QUORUMLOST the command was given up, because the client has closed its side of the connection" {
				t.Errorf("%s: %v %s", name, o.Verdict, o.NoQuorumError())
			}
		}
		w.elapse(second)
		w.wantHeard(0, "")
	})
}

// A lock without TTL takes a second round trip. A client that has gone in the meantime
// would hold it for ever.
func TestTimelineAClientThatGoesLateHoldsNothingForEver(t *testing.T) {
	for _, script := range []string{"ok@5ms ok@5ms ok@5ms ok@5ms ok@5ms", "ok@5ms ok@5ms ok@5ms pause ok@30ms"} {
		t.Run(script, func(t *testing.T) {
			onTimeline(t, script, func(t *testing.T, w *timeline) {
				ctx := w.goneAfter(7 * time.Millisecond)
				if o := w.locker.Acquire(ctx, AcquireRequest{Key: []byte(key), Value: []byte(tokenA)}); o.Verdict == Won {
					t.Errorf("won by a client that has gone")
				}
				w.elapse(second)
				w.wantHeard(0, "SET, persist.lua, release.lua")
				for i, m := range w.masters {
					if m.value(key) == tokenA {
						t.Errorf("master %d still holds its lock", i+1)
					}
				}
			})
		})
	}
}

func TestTimelineALockThatIsHeldTellsItsHolder(t *testing.T) {
	onTimeline(t, "no no no ok ok", func(t *testing.T, w *timeline) {
		r := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: 10 * second, Get: true}
		if o := w.locker.Acquire(context.Background(), r); o.Verdict != Lost || string(o.Value) != foreign {
			t.Errorf("%v %q", o.Verdict, o.Value)
		}
	})
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		r := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: 10 * second, Get: true}
		if o := w.locker.Acquire(context.Background(), r); o.Verdict != Won || o.Value != nil {
			t.Errorf("%v %q", o.Verdict, o.Value)
		}
	})
}

func TestTimelineWhoTriesAgainAtOnceWaitsForWhatIsOwed(t *testing.T) {
	onTimeline(t, "refuse refuse refuse ok@20ms ok@20ms", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, NoQuorum, time.Millisecond)
		w.play("refuse ok@20ms ok@20ms ok@20ms ok@20ms")
		if o, _ = w.acquire(tokenB, 10*second); o.Verdict != NoQuorum {
			t.Fatalf("%v", o.Verdict)
		}
		w.play("ok ok@20ms ok@20ms ok@20ms ok@20ms")
		if o, _ = w.acquire(tokenC, 10*second); o.Verdict != Won {
			t.Fatalf("%+v", o)
		}
		w.elapse(second)
		w.wantValues("C - - C C") // the others answered a moment later
	})
}

// Requests do not wait for masters that hang, because those answer nobody.
func TestTimelineWhatIsOwedByHungMastersIsNotWaitedFor(t *testing.T) {
	onTimeline(t, "pause pause pause ok ok", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, NoQuorum, timeout)
		w.sleep(time.Millisecond)
		o, took = w.acquire(tokenB, 10*second)
		w.wantVerdict(o, took, NoQuorum, 0)
	})
}

// A marker could not be raised because its master could not serve. It is raised with the
// next lock. Until then the master's votes do not count.
func TestTimelineAMarkerThatCouldNotBeRaisedIsRaisedWithTheNextLock(t *testing.T) {
	onTimeline(t, "refuse refuse ok@20ms ok@20ms ok@20ms", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 10*second)
		w.play("ok ok pause pause ok")
		if o := w.acquireKey("lock:another", tokenB); o.Verdict != Won {
			t.Errorf("%+v", o)
		}
	})
}
