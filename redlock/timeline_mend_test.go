package redlock

import (
	"context"
	"slices"
	"testing"
	"time"

	"redlock-proxy/redlock/effect"
)

// Copies that differ, or that are too few to hold a lock.

// enough is after what is met now has been mended.
const enough = 3 * second

func (w *timeline) exists() Outcome {
	return w.locker.Exists(context.Background(), 0, []byte(key))
}

func TestTimelineStraysAreDeleted(t *testing.T) {
	for _, ttl := range []time.Duration{0, time.Hour} {
		for _, holds := range []string{"A - - - -", "- A - B -", "1 - - - 1"} {
			for name, meet := range map[string]func(w *timeline) Outcome{
				"GET": (*timeline).get, "EXISTS": (*timeline).exists,
				"DEL": func(w *timeline) Outcome { return byDEL(w.locker) },
			} {
				t.Run(holds+" "+name, func(t *testing.T) {
					onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
						w.put(holds, ttl)
						if o := meet(w); o.Verdict != Lost {
							t.Errorf("%+v", o)
						}
						w.elapse(second)
						w.wantValues(holds)
						w.elapse(enough)
						w.wantValues("- - - - -")
					})
				})
			}
		}
	}
}

// A grant comes long after the release that was sent again, and its PERSIST
// behind it.
func TestTimelineAVeryLateGrantIsDeleted(t *testing.T) {
	for _, value := range []string{tokenA, short} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			other := w.another(timelineConfig())
			w.links[4].SetDelay(90*time.Millisecond, 0)
			w.mustAcquire(value, 0)
			if o := byDEL(other); o.Verdict != Won {
				t.Fatalf("%+v", o)
			}
			w.elapse(95 * time.Millisecond)
			w.wantValues("- - - - " + map[string]string{tokenA: "A", short: "1"}[value])
			w.elapse(enough)
			w.wantValues("- - - - -")
		})
	}
}

func TestTimelineMendingSparesWhatHasChanged(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		for n := range 20 { // others come and go
			w.put("1 1 - - -", time.Minute+time.Duration(n)*second)
			w.get()
			w.elapse(700 * time.Millisecond)
			w.wantValues("1 1 - - -")
		}
	})
}

func TestTimelineALockThatMastersMayHaveForgottenIsNoStray(t *testing.T) {
	for name, away := range map[string]func(w *timeline){
		"forgotten": func(w *timeline) { w.forget(2); w.settle() },
		"kill":      func(w *timeline) { w.play("ok ok kill ok ok") },
		"hung":      func(w *timeline) { w.play("ok ok pause ok ok") },
		"cannot":    func(w *timeline) { w.play("ok ok refuse ok ok") },
	} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.put("A A A - -", time.Hour)
				away(w)
				w.masters[2].Put(key, tokenA, time.Hour)
				if name == "forgotten" {
					w.masters[2].Flush()
					w.settle()
				}
				for range 5 {
					w.get()
					w.elapse(enough)
				}
				w.masters[2].Resume()
				if a, b := w.masters[0].Value(key), w.masters[1].Value(key); a != tokenA || b != tokenA {
					t.Errorf("a holder's copies are %q and %q", a, b)
				}
			})
		})
	}
}

func TestTimelineCopiesThatDifferAreMadeEqual(t *testing.T) {
	for _, row := range []struct{ holds, want string }{
		{"A A B B C", "A A A A A"},
		{"C B B A A", "B B B B B"},
		{"- A B C -", "- A A A -"},
		{"8 7 5 7 10", "10 10 10 10 10"},
		{"7 5 5 5 8", "5 5 5 5 5"},
		{"A 7 5 5 -", "5 5 5 5 -"},
	} {
		for _, ttl := range []time.Duration{0, time.Hour} {
			t.Run(row.holds, func(t *testing.T) {
				onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
					w.put(row.holds, ttl)
					w.locker.mender.Mend(0, key)
					w.elapse(enough)
					w.wantValues(row.want)
					if o := w.get(); o.Verdict != Won {
						t.Errorf("GET: %+v", o)
					}
					want := int64(effect.NoExpiry)
					if ttl > 0 {
						want = int64((ttl - enough) / time.Millisecond)
					}
					o := w.locker.TTL(t.Context(), TTLRequest{Key: []byte(key), Name: "PTTL"})
					if !effect.Near(o.Number, want, 10) {
						t.Errorf("PTTL: %d, want %d", o.Number, want)
					}
				})
			})
		}
	}
}

func TestTimelineCopiesAreNotMadeEqualWhileAMasterMayHaveForgotten(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.forget(4)
		w.settle()
		w.put("A A B B -", 0)
		for range 3 {
			w.get()
			w.elapse(enough)
		}
		w.wantValues("A A B B -")
	})
}

// Nobody waits for copies to be mended. A DEL that cannot know what is held deletes nothing, and the next
// one finds them equal.
func TestTimelineADELSparesVotesWhereItIsNotClearWhatIsHeld(t *testing.T) {
	for _, holds := range []string{"A A B B -", "A A B B C"} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put(holds, time.Hour)
			if o, took := w.release(); o.Verdict != NoQuorum || took > second {
				t.Errorf("%v after %v", o.Verdict, took)
			}
			w.elapse(0)
			w.wantValues(holds)
			w.elapse(enough)
			if o, took := w.release(); o.Verdict != Won || string(o.Value) != tokenA || took > second {
				t.Errorf("%v after %v", o.Verdict, took)
			}
			w.elapse(0)
			w.wantValues("- - - - -")
		})
	}
}

func incr(l *Locker) Outcome {
	return l.Run(context.Background(), RunRequest{Keys: [][]byte{[]byte(key)}, Args: [][]byte{[]byte("INCR"), []byte(key)}})
}

func TestTimelineACounterThatDiffersIsMadeEqualAndThenCounts(t *testing.T) {
	for _, row := range []struct{ holds, reply, want string }{
		{"8 7 5 7 10", ":11\r\n", "11 11 11 11 11"},
		{"3 4 5 - -", ":6\r\n", "6 6 6 6 6"},
	} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put(row.holds, 0)
			began := time.Now()
			if o := incr(w.locker); o.Verdict != NoQuorum || time.Since(began) > second {
				t.Errorf("%v %q after %v", o.Verdict, o.Reply, time.Since(began))
			}
			w.elapse(enough)
			if o := incr(w.locker); o.Verdict != Won || string(o.Reply) != row.reply {
				t.Errorf("%v %q", o.Verdict, o.Reply)
			}
			w.elapse(0)
			w.wantValues(row.want)
		})
	}
}

// Two proxies count at the same moment, and one master gets the second count first.
func TestTimelineCountersThatCrossStayEqual(t *testing.T) {
	for master := range 5 {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			other, links := w.connect("other", timelineConfig())
			w.others = append(w.others, other)
			w.put("6 6 6 6 6", 0)
			for i := range links {
				near, far := w.links[i], links[i]
				if i == master {
					near, far = far, near
				}
				near.SetDelay(time.Millisecond, 0)
				far.SetDelay(2*time.Millisecond, 0)
			}
			one, two := begin(w, func() Outcome { return incr(w.locker) }), begin(w, func() Outcome { return incr(other) })
			replies := []string{string(one().Reply), string(two().Reply)}
			slices.Sort(replies)
			if replies[0] != ":7\r\n" || replies[1] != ":8\r\n" {
				t.Errorf("%q", replies)
			}
			w.elapse(0)
			w.wantValues("8 8 8 8 8")
		})
	}
}

// Votes of clients that died remain, and later clients only ask for the lock.
func TestTimelineWhoOnlyAsksHasCopiesMended(t *testing.T) {
	onTimeline(t, "ok@9ms ok ok@9ms ok ok@9ms", func(t *testing.T, w *timeline) {
		w.put("A - B - C", time.Minute)
		if o, _ := w.acquire("a fourth token, of nobody yet", 10*second); o.Verdict != Lost {
			t.Errorf("%+v", o)
		}
		w.elapse(enough)
		w.wantValues("A - A - A")
	})
}
