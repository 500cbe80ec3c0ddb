package redlock

import (
	"context"
	"testing"
	"time"
)

// Examined runs: what scripts do is voted on, undone and delivered like commands that have
// a request of their own.

func (w *timeline) eval(script string, args ...string) Outcome {
	command := [][]byte{[]byte("EVAL"), []byte(script), []byte("1"), []byte(key)}
	for _, a := range args {
		command = append(command, []byte(a))
	}
	return w.locker.Run(context.Background(), RunRequest{Keys: [][]byte{[]byte(key)}, Args: command})
}

func TestTimelineAScriptThatAcquiresIsWonByAQuorum(t *testing.T) {
	for _, row := range []struct {
		script  string
		verdict Verdict
		reply   string
		after   string
	}{
		{"ok ok ok ok ok", Won, ":1\r\n", "A A A A A"},
		{"ok ok ok no no", Won, ":1\r\n", "A A A X X"},
		{"ok ok ok kill kill", Won, ":1\r\n", "A A A - -"},
		{"ok ok no no no", Won, ":0\r\n", "- - X X X"}, // a quorum refused, in the same state
		{"no no no no no", Won, ":0\r\n", "X X X X X"},
		{"ok ok kill kill kill", NoQuorum, "", "- - - - -"},
		{"ok ok refuse refuse refuse", NoQuorum, "", "- - - - -"},
	} {
		t.Run(row.script, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				if o := w.eval(takeIfFree, tokenA, "10000"); o.Verdict != row.verdict || string(o.Reply) != row.reply {
					t.Errorf("%v %q, want %v %q", o.Verdict, o.Reply, row.verdict, row.reply)
				}
				w.elapse(0)
				w.wantValues(row.after)
				if n := w.countHeard(1, "take-if-free"); n > 1 {
					t.Errorf("a master executed it %d times", n)
				}
			})
		})
	}
}

func TestTimelineASplitScriptIsUndoneAndNoRefusalIsInvented(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("- - X X B", time.Minute)
		o := w.eval(takeIfFree, tokenA, "10000")
		if o.Verdict == Won || string(o.Reply) == ":1\r\n" {
			t.Errorf("%v %q", o.Verdict, o.Reply)
		}
		w.elapse(0)
		w.wantValues("- - X X B")
	})
}

func TestTimelineAScriptThatReleasesIsDeliveredToWhoMissedIt(t *testing.T) {
	for _, script := range []string{"ok ok ok kill kill", "ok ok ok lost lost", "ok ok ok cut cut"} {
		t.Run(script, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.put("A A A A A", time.Minute)
				w.play(script)
				if o := w.eval(compareAndDelete, tokenA); o.Verdict != Won || string(o.Reply) != ":1\r\n" {
					t.Errorf("%v %q", o.Verdict, o.Reply)
				}
				w.elapse(0)
				for _, m := range w.masters[3:] {
					m.Restart(true)
				}
				w.elapse(4 * second)
				w.wantValues("- - - - -")
			})
		})
	}
}

// A short value may be a constant that came back through another process while the master was away. Nobody
// knows, so the master is told nothing.
func TestTimelineAShortValueThatARunReplacedMayComeBack(t *testing.T) {
	const on = "on"
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		other := w.another(timelineConfig())
		set := func(l *Locker, value string) {
			if o := l.Run(t.Context(), RunRequest{Keys: [][]byte{[]byte(key)}, Args: [][]byte{[]byte("SET"), []byte(key), []byte(value)}}); o.Verdict != Won {
				t.Fatalf("%v %q", o.Verdict, o.Reply)
			}
			w.elapse(timeout)
		}
		set(w.locker, on)
		w.links[4].Mute()
		w.links[4].Cut()
		w.elapse(3 * second)
		set(w.locker, "off")
		set(other, on)
		w.links[4].Unmute()
		w.elapse(4 * second)
		if v := w.masters[4].Value(key); v != on {
			t.Errorf("the last master holds %q", v)
		}
	})
}

func TestTimelineAnUnknownVoteOfAScriptIsUndoneByALongValueOnly(t *testing.T) {
	for _, row := range []struct{ script, value, after string }{
		{"ok@1ms cut@5ms no@9ms no@9ms no@9ms", tokenA, "- - X X X"},
		{"ok@1ms cut@5ms no@9ms no@9ms no@9ms", short, "- 1 X X X"},
		{"ok@1ms cut@5ms refuse@9ms refuse@9ms refuse@9ms", tokenA, "- - - - -"}, // without a quorum
		{"ok@1ms ok@1ms ok@9ms cut@5ms ok@9ms", tokenA, "A A A A A"},             // it was won
	} {
		onTimeline(t, row.script, func(t *testing.T, w *timeline) {
			w.eval(takeIfFree, row.value, "10000")
			w.elapse(0)
			w.wantValues(row.after)
		})
	}
}

// The masters get a TTL on record before a run is won. That takes time, too.
func TestTimelineAScriptIsNotWonIfItsRecordTookTooLong(t *testing.T) {
	for ttl, want := range map[string]Verdict{"70": Lost, "100": Won} {
		onTimeline(t, "ok@40ms ok@40ms ok@40ms ok@40ms ok@40ms", func(t *testing.T, w *timeline) {
			if o := w.eval(takeIfFree, tokenA, ttl); (o.Verdict == Won) != (want == Won) {
				t.Errorf("%s ms: %v %q", ttl, o.Verdict, o.Reply)
			}
		})
	}
}

// ShedLock gives up a job's lock so that it ends a few milliseconds later.
func TestTimelineALockIsGivenUpInAMoment(t *testing.T) {
	for _, left := range []string{"3", "4", "5", "9"} {
		onTimeline(t, "ok@3ms ok@5ms ok@7ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
			w.put("A A A A A", time.Minute)
			lock := bytesOf([]string{key})
			began := time.Now()
			o := w.locker.Run(t.Context(), RunRequest{Keys: lock, Args: bytesOf([]string{"SET", key, tokenB, "XX", "PX", left})})
			if o.Verdict != Won || string(o.Reply) != "+OK\r\n" || time.Since(began) > 20*time.Millisecond {
				t.Errorf("%s ms: %v %q after %v", left, o.Verdict, o.Reply, time.Since(began))
			}
		})
	}
}

func TestTimelineARefusalIsNotUndone(t *testing.T) {
	cfg := timelineConfig()
	seen := &votesSeen{seen: map[string]int{}}
	cfg.Observer = seen
	onTimelineWith(t, cfg, "ok ok ok no no", func(t *testing.T, w *timeline) {
		wantReply(t, w.eval(takeIfFree, tokenA, "10000"), ":1\r\n")
		w.elapse(0)
		seen.want(t, "m4 refused", 1)
		seen.want(t, "m4 undone", 0)
	})
}

// Some masters have forgotten a script. The others have executed it, and their effects are undone
// before it goes out once more. So nothing that is undone comes behind the second try.
func TestTimelineAScriptThatHadToBeLoadedGoesOutWhenAllHaveAnswered(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		take := func() Outcome {
			return w.locker.Run(t.Context(), RunRequest{
				Keys:    bytesOf([]string{key}),
				Args:    bytesOf([]string{"EVALSHA", sha1Of([]byte(takeIfFree)), "1", key, tokenA, "10000"}),
				Scripts: bytesOf([]string{takeIfFree}),
			})
		}
		wantReply(t, take(), ":1\r\n")
		w.elapse(20 * second)
		w.play("ok ok ok ok@9ms ok@9ms")
		for _, m := range w.masters[:3] {
			clear(m.Scripts)
		}
		wantReply(t, take(), ":1\r\n")
		w.elapse(second)
		w.wantValues("A A A A A")
		// It is won without the master that has forgotten it.
		w.elapse(20 * second)
		w.play("ok ok@9ms ok@9ms ok@9ms ok@9ms")
		clear(w.masters[0].Scripts)
		wantReply(t, take(), ":1\r\n")
	})
}

func TestTimelineAScriptDoesNotGoOutIfItsClientHasGone(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		w.beginAcquire(tokenA, 10*second)
		w.sleep(time.Millisecond)
		ctx := w.goneAfter(time.Millisecond)
		r := RunRequest{Keys: bytesOf([]string{key}), Args: bytesOf([]string{"EVAL", takeIfFree, "1", key, tokenB, "10000"})}
		if o := w.locker.Run(ctx, r); o.Verdict != NoQuorum {
			t.Errorf("%v %q", o.Verdict, o.Reply)
		}
		w.elapse(second)
		if n := w.countHeard(0, "take-if-free"); n > 0 {
			t.Errorf("a master executed it %d times", n)
		}
	})
}

func TestTimelineALateVoteOfAScriptIsUndone(t *testing.T) {
	onTimeline(t, "ok@80ms pause no no no", func(t *testing.T, w *timeline) {
		if o := w.eval(takeIfFree, tokenA, "10000"); string(o.Reply) != ":0\r\n" {
			t.Errorf("%v %q", o.Verdict, o.Reply)
		}
		w.elapse(second)
		w.wantValues("- - X X X")
		w.masters[1].Resume()
		w.elapse(second)
		w.wantValues("- - X X X")
	})
}

// A master that stood still between the two commands that show a key's expiry misread it. So
// it does not recognise what it should undo.
func TestTimelineACopyWithAMisreadExpiryIsMended(t *testing.T) {
	onTimeline(t, "no no no ok ok", func(t *testing.T, w *timeline) {
		w.masters[3].Misreads(5 * time.Millisecond)
		wantReply(t, w.eval(takeIfFree, tokenA, "60000"), ":0\r\n")
		w.masters[3].Misreads(0)
		w.elapse(second)
		w.wantValues("X X X A -")
		w.elapse(4 * second)
		w.wantValues("X X X X -")
	})
}

// A client that was refused may release at once, also where its late grant is not undone
// yet. That master finds the grant, and the others find nothing. What is put back is mended.
func TestTimelineAReleaseOfALateGrantIsMended(t *testing.T) {
	onTimeline(t, "no no no no ok@30ms", func(t *testing.T, w *timeline) {
		wantReply(t, w.eval(takeIfFree, tokenA, "10000"), ":0\r\n")
		wantReply(t, w.eval(compareAndDelete+"\n--\\", tokenA), ":0\r\n") // it is examined
		w.elapse(4 * second)
		w.wantValues("X X X X X")
	})
}

// A quorum deletes the lock, and some say so too late. The client hears of no quorum. It releases again,
// through another proxy, and hears that there is no lock. So no late vote may put a copy back for good.
func TestTimelineALockThatAQuorumDeletedLateStaysReleased(t *testing.T) {
	for _, row := range []struct{ script, then string }{
		{"ok ok ok@80ms ok@80ms ok@80ms", "A A - - -"},
		{"ok ok@70ms ok@80ms ok@90ms ok@90ms", "A A - - -"},
	} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			other := w.another(timelineConfig())
			w.put("A A A A A", time.Hour)
			w.play(row.script)
			if o := w.eval(compareAndDelete+"\n--\\", tokenA); o.Verdict != NoQuorum {
				t.Errorf("%v %q", o.Verdict, o.Reply)
			}
			w.play("ok ok ok ok ok")
			again := bytesOf([]string{"EVAL", compareAndDelete + "\n--\\", "1", key, tokenA})
			wantReply(t, other.Run(t.Context(), RunRequest{Keys: bytesOf([]string{key}), Args: again}), ":0\r\n")
			w.elapse(0)
			w.wantValues(row.then)
			w.elapse(enough)
			w.wantValues("- - - - -")
		})
	}
}

// A late deletion is put back unless it completes a quorum of deletions.
func TestTimelineALateDeletionIsPutBackUnlessItReleases(t *testing.T) {
	for _, row := range []struct{ script, then string }{
		{"ok ok@80ms pause pause pause", "A A A A A"},
		{"ok ok ok@80ms pause pause", "A A - A A"},
	} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put("A A A A A", time.Hour)
			w.play(row.script)
			if o := w.eval(compareAndDelete+"\n--\\", tokenA); o.Verdict != NoQuorum {
				t.Errorf("%v %q", o.Verdict, o.Reply)
			}
			w.elapse(0)
			w.wantValues(row.then)
		})
	}
}

// The packets of a release are held up. Its client releases through another proxy, and takes the lock again
// with the same content, as a re-entrant lock has. The late deletions are those of this lock, so all are put back.
func TestTimelineALateDeletionOfTheNextLockIsPutBack(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Minute)
		w.play("ok ok pause pause pause")
		if o := w.eval(compareAndDelete+"\n--\\", tokenA); o.Verdict != NoQuorum {
			t.Errorf("%v %q", o.Verdict, o.Reply)
		}
		w.put("A A A A A", time.Minute)
		for _, m := range w.masters[2:] {
			m.Resume()
		}
		w.elapse(second)
		w.wantValues("A A A A A")
	})
}

// A master that was stopped creates the lock late, with its full TTL. The release that
// follows must not take it for a later lock.
func TestTimelineAScriptThatReleasesReachesALateGrant(t *testing.T) {
	for value, after := range map[string]string{tokenA: "- - - - -", short: "- - - - 1"} {
		onTimeline(t, "ok ok ok ok pause", func(t *testing.T, w *timeline) {
			wantReply(t, w.eval(takeIfFree, value, "60000"), ":1\r\n")
			w.elapse(3 * timeout)
			wantReply(t, w.eval(compareAndDelete+"\n--\\", value), ":1\r\n")
			w.masters[4].Resume()
			w.elapse(second)
			w.wantValues(after)
		})
	}
}

// What only one master deleted is put back. If it stays there alone, nobody can hold it.
func TestTimelineACopyThatWasPutBackIsMended(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("- - - - A", time.Minute)
		wantReply(t, w.eval(compareAndDelete+"\n--\\", tokenA), ":0\r\n")
		w.elapse(second)
		w.wantValues("- - - - A")
		w.elapse(3 * second)
		w.wantValues("- - - - -")
	})
}

func TestTimelineAScriptTakesItsTurnWithAcquires(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		w.beginAcquire(tokenA, 10*second)
		w.sleep(time.Millisecond)
		began := time.Now()
		if o := w.eval(takeIfFree, tokenB, "10000"); string(o.Reply) != ":0\r\n" {
			t.Errorf("%v %q", o.Verdict, o.Reply)
		}
		if took := time.Since(began); took != 17*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// A holder's script goes before those that wait, but not in the middle of a ballot. Any
// script that has not acquired so far counts as a holder's.
func TestTimelineAScriptGoesBeforeThoseThatWaitUntilItHasAcquired(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		wantReply(t, w.eval(takeIfFree, tokenB, "10000"), ":1\r\n")
		for range 5 {
			w.crew().Go(func() { w.eval(takeIfFree, tokenA, "10000") })
		}
		w.sleep(time.Millisecond)
		began := time.Now()
		wantReply(t, w.eval(extendIfMine, tokenB, "10000"), ":1\r\n")
		if took := time.Since(began); took != 17*time.Millisecond {
			t.Errorf("the holder's script took %v", took)
		}
		wantReply(t, w.eval(takeIfFree, tokenC, "10000"), ":0\r\n")
		if took := time.Since(began); took != (17+4*9+9)*time.Millisecond {
			t.Errorf("one that had acquired took %v", took)
		}
	})
}

// Nobody knows what a script will do. So a script that only read so far also waits for
// the end of an acquire that is under way.
func TestTimelineAScriptThatAcquiresForTheFirstTimeHasItsTurn(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		w.put("X X X X X", second)
		wantReply(t, w.eval(takeIfFree, tokenB, "10000"), ":0\r\n")
		w.elapse(2 * second)
		w.beginAcquire(tokenA, 10*second)
		w.sleep(time.Millisecond)
		w.beginAcquire(tokenC, 10*second)
		began := time.Now()
		wantReply(t, w.eval(takeIfFree, tokenB, "10000"), ":0\r\n")
		if took := time.Since(began); took != 17*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.wantValues("A A A A A")
	})
}

// A client hears why its refusal does not count. The masters can vote.
func TestTimelineARefusalAfterADeletionDoesNotBlameTheMasters(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry.Count, cfg.Retry.Delay = 8, second
	onTimelineWith(t, cfg, "ok ok ok ok mute", func(t *testing.T, w *timeline) {
		w.put("A A - - -", 60*time.Millisecond)
		o := w.eval(compareAndDelete+"\n--\\", tokenA)
		if o.Verdict != NoQuorum || o.Voting < o.Needed {
			t.Errorf("%v %q, %s", o.Verdict, o.Reply, o.NoQuorumError())
		}
	})
}
