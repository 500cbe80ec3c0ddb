package redlock

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
)

// Reads, and the swaps of the old SETNX page.

func (w *timeline) get() Outcome { return w.locker.Get(context.Background(), 0, []byte(key)) }

func TestTimelineAReadAnswersWhatAQuorumAgreesOn(t *testing.T) {
	for _, row := range []struct {
		script, holds string
		get, exists   Verdict
	}{
		{"ok ok ok ok ok", "A A A A A", Won, Won},
		{"ok ok ok ok ok", "A A A B -", Won, Won},
		{"ok ok ok ok ok", "A A B B -", Won, Won},             // the key exists
		{"ok ok ok ok kill", "A B - - -", NoQuorum, NoQuorum}, // it may
		{"ok ok ok ok ok", "A A - - -", Lost, Lost},
		{"ok ok ok ok kill", "A A - - A", NoQuorum, NoQuorum}, // the fifth may have it
		{"ok ok ok ok kill", "A - - - A", Lost, Lost},
		{"ok ok ok refuse refuse", "A A A - -", Won, Won},
		{"ok ok ok pause pause", "- - - A A", Lost, Lost},
		{"ok ok pause refuse kill", "A A A A A", NoQuorum, NoQuorum},
		{"ok ok pause refuse kill", "- - - - -", NoQuorum, NoQuorum},
	} {
		t.Run(row.script+" holding "+row.holds, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.put(row.holds, time.Minute)
				if o := w.get(); o.Verdict != row.get || (o.Value != nil) != (row.get == Won) {
					t.Errorf("GET: %v %q, want %v", o.Verdict, o.Value, row.get)
				}
				if o := w.locker.Exists(context.Background(), 0, []byte(key)); o.Verdict != row.exists {
					t.Errorf("EXISTS: %v, want %v", o.Verdict, row.exists)
				}
			})
		})
	}
}

func TestTimelineATTLIsWhatAQuorumStillHas(t *testing.T) {
	for _, row := range []struct {
		name, script string
		ttls         []time.Duration // 0: for ever; -1: absent
		want         int64
	}{
		{"the third largest", "ok@9ms ok@9ms ok ok ok", []time.Duration{1 * second, 2 * second, 3 * second, 4 * second, 5 * second}, 3000},
		{"the least of who answered", "ok ok ok ok@9ms ok@9ms", []time.Duration{1 * second, 2 * second, 3 * second, 4 * second, 5 * second}, 1000},
		{"of those that have it", "ok ok ok ok ok", []time.Duration{9 * second, -1, 7 * second, -1, 8 * second}, 7000},
		{"for ever", "ok ok ok ok ok@9ms", []time.Duration{0, 0, 0, -1, second}, -1},
		{"for ever on a minority", "ok ok ok ok ok@9ms", []time.Duration{0, 0, 4 * second, -1, second}, 4000},
		{"absent", "ok ok ok ok ok", []time.Duration{0, 9 * second, -1, -1, -1}, -2},
	} {
		t.Run(row.name, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				for i, ttl := range row.ttls {
					if ttl >= 0 {
						w.masters[i].put(key, tokenA, ttl)
					}
				}
				o := w.locker.TTL(context.Background(), TTLRequest{Key: []byte(key), Name: "PTTL"})
				if o.Verdict == NoQuorum || o.Number != row.want {
					t.Errorf("%v %d, want %d", o.Verdict, o.Number, row.want)
				}
			})
		})
	}
}

// swap executes GETSET. Value is the old value.
func (w *timeline) swap(l *Locker, value string) Outcome {
	o := l.Run(context.Background(), RunRequest{Keys: [][]byte{[]byte(key)}, Args: bytesOf([]string{"GETSET", key, value})})
	if v, ok := resp.ParseBulk(o.Reply); ok && o.Verdict == Won {
		o.Value = v
	}
	return o
}

func TestTimelineAtMostOneOfRacingSwapsWins(t *testing.T) {
	// Three proxies race. When the next one comes, their progress differs from master to
	// master.
	for order := range 64 {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put("X X X X X", 0)
			proxies := []*Locker{w.locker}
			for range 2 {
				l, links := w.connect("racer", timelineConfig())
				w.others = append(w.others, l)
				proxies = append(proxies, l)
				for i, k := range links {
					k.setDelay(time.Duration(hash(uint64(order), uint64(len(proxies)), uint64(i))%20)*time.Millisecond, 0)
				}
			}
			for i, k := range w.links {
				k.setDelay(time.Duration(hash(uint64(order), uint64(i))%20)*time.Millisecond, 0)
			}
			racing := w.crew()
			winners := 0
			for i, l := range proxies {
				racing.Go(func() {
					value := []string{tokenA, tokenB, tokenC}[i]
					o := w.swap(l, value)
					switch {
					case o.Verdict == NoQuorum:
					case string(o.Value) == foreign:
						winners++
					case o.Value == nil || string(o.Value) == value:
						t.Errorf("a loser was told %q", o.Value)
					}
				})
			}
			racing.Wait()
			if winners > 1 {
				t.Errorf("order %d: %d winners", order, winners)
			}
			w.elapse(0)
		})
	}
}

func TestTimelineARaceOfSwapsLeavesOneValue(t *testing.T) {
	for order := range 32 {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put("1000.5 1000.5 1000.5 1000.5 1000.5", 0)
			racers := []*Locker{w.locker}
			for i := range 2 {
				l, links := w.connect("racer", timelineConfig())
				w.others = append(w.others, l)
				racers = append(racers, l)
				for j, k := range links {
					k.setDelay(time.Duration(hash(uint64(order), uint64(i), uint64(j))%20)*time.Millisecond, 0)
				}
			}
			racing := w.crew()
			won := 0
			for i, l := range racers {
				racing.Go(func() {
					if w.swap(l, fmt.Sprintf("200%d.25", i)).Verdict == Won {
						won++
					}
				})
			}
			racing.Wait()
			w.elapse(10 * time.Second)
			o := w.locker.Get(t.Context(), 0, []byte(key))
			if o.Verdict != Won || won > 0 && !strings.HasPrefix(string(o.Value), "200") {
				t.Errorf("order %d: %v %q, and %d swaps were won", order, o.Verdict, o.Value, won)
				w.dump()
			}
		})
	}
}

func TestTimelineASwapReturnsTheExpectedValueOnlyFromAQuorum(t *testing.T) {
	for _, row := range []struct {
		script, holds string
		verdict       Verdict
		value         string
	}{
		{"ok ok ok ok ok", "X X X X X", Won, foreign},
		{"ok ok ok ok ok", "X X X B B", Won, foreign},
		{"ok ok ok ok ok", "X X B B C", NoQuorum, ""},
		{"ok ok ok ok ok", "A A X X B", NoQuorum, ""},
		{"ok ok ok ok ok", "- - X X A", NoQuorum, ""},
		{"ok ok ok ok ok", "B B B X X", Won, tokenB},
		{"ok ok ok ok ok", "- - - X X", Won, ""},
		{"ok ok ok kill kill", "X X X X X", Won, foreign},
		{"ok ok kill kill kill", "X X X X X", NoQuorum, ""},
		{"ok ok ok pause pause", "X X B X X", NoQuorum, ""},
	} {
		t.Run(row.script+" holding "+row.holds, func(t *testing.T) {
			onTimeline(t, row.script, func(t *testing.T, w *timeline) {
				w.put(row.holds, 0)
				if o := w.swap(w.locker, tokenA); o.Verdict != row.verdict || string(o.Value) != row.value {
					t.Errorf("%v %q, want %v %q", o.Verdict, o.Value, row.verdict, row.value)
				}
			})
		})
	}
}

// These locks have no TTL. A master that missed a swap which was won gets a timestamp later, and gives a
// token up. Nobody gets one that was not won.
func TestTimelineASwapThatAMasterMissedReachesIt(t *testing.T) {
	for _, row := range []struct{ holds, value, after string }{
		{strings.Repeat("1764140000.5 ", 5), "1764140009.25", "1764140009.25"},
		{strings.Repeat("1764140000 ", 5), "1764140009", "1764140009"},
		{"X X X X X", tokenA, ""},
		{"X X B B X", tokenA, foreign},
	} {
		onTimeline(t, "ok ok ok ok lost", func(t *testing.T, w *timeline) {
			w.put(row.holds, 0)
			w.swap(w.locker, row.value)
			w.elapse(200 * time.Millisecond) // before copies that differ are made equal
			if v := w.masters[4].value(key); v != row.after {
				t.Errorf("of %s: the last master holds %q, want %q", row.holds, v, row.after)
				w.dump()
			}
		})
	}
}

// A copy that differed before a swap that was won is made equal to the others.
func TestTimelineASwapHasACopyMendedThatDiffers(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("1000.5 1000.5 1000.5 1000.5 900.5", 0)
		if o := w.swap(w.locker, "2000.25"); o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
		w.elapse(5 * time.Second)
		w.wantValues("2000.25 2000.25 2000.25 2000.25 2000.25")
	})
}

func TestTimelineASwapTakesItsTurnWithAcquires(t *testing.T) {
	onTimeline(t, "ok@9ms ok@9ms ok@9ms ok@9ms ok@9ms", func(t *testing.T, w *timeline) {
		w.beginAcquire(tokenA, 10*second)
		w.sleep(time.Millisecond)
		began := time.Now()
		if o := w.swap(w.locker, tokenB); string(o.Value) != tokenA {
			t.Errorf("%v %q", o.Verdict, o.Value)
		}
		if took := time.Since(began); took != 17*time.Millisecond {
			t.Errorf("took %v", took)
		}
		w.elapse(0)
	})
}

// All answers follow one rule about whether the key exists.
func TestTimelineAllAnswersAgreeOnWhetherTheKeyExists(t *testing.T) {
	for _, row := range []struct{ holds, get string }{
		{"A A B B C", tokenA},
		{"C B B A A", tokenB},
		{"- A B C -", tokenA},
		{"- 7 5 9 9", "9"},
		{"8 7 5 7 9", "9"},
		{"- - 10 9 10", "10"},
		{"- - A A -", ""},
		{"A - - B -", ""},
	} {
		t.Run(row.holds, func(t *testing.T) {
			cfg := timelineConfig()
			cfg.Retry = Retry{Count: 3, Delay: 10 * time.Millisecond}
			onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.put(row.holds, time.Minute)
				exists, ctx := row.get != "", t.Context()
				if o := w.get(); string(o.Value) != row.get || o.Verdict != won(exists) {
					t.Errorf("GET: %v %q", o.Verdict, o.Value)
				}
				if o := w.locker.Exists(ctx, 0, []byte(key)); o.Verdict != won(exists) {
					t.Errorf("EXISTS: %v", o.Verdict)
				}
				if o := w.locker.TTL(ctx, TTLRequest{Key: []byte(key), Name: "PTTL"}); (o.Number > 0) != exists {
					t.Errorf("PTTL: %v %d", o.Verdict, o.Number)
				}
				o := w.locker.Acquire(ctx, AcquireRequest{Key: []byte(key), Value: []byte("a fourth token, of nobody yet"), TTL: second, Get: true})
				if o.Verdict != won(!exists) || string(o.Value) != row.get {
					t.Errorf("SET NX GET: %v %q", o.Verdict, o.Value)
				}
				if o := byDEL(w.locker); o.Verdict == Lost { // it exists now at any rate
					t.Errorf("DEL: %v", o.Verdict)
				}
			})
		})
	}
}

func won(b bool) Verdict {
	if b {
		return Won
	}
	return Lost
}

// A master in quarantine may show a lock that was released long ago, or a value that the
// real holder never had.
func TestTimelineACopyInQuarantineCompletesNoQuorum(t *testing.T) {
	for _, row := range []struct {
		holds       string
		get, exists Verdict
	}{
		{"A A B - -", NoQuorum, NoQuorum},
		{"A A A - -", NoQuorum, NoQuorum},
		{"A - - - -", Lost, Lost},
		{"- - B B -", NoQuorum, NoQuorum},
		{"- - - A A", NoQuorum, NoQuorum},
		{"- A A - A", Won, Won},
		{"- B A A A", Won, Won},
	} {
		t.Run(row.holds, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.forget(0)
				w.elapse(5 * second)
				w.wantStandings(w.locker, "QCCCC")
				w.put(row.holds, time.Minute)
				if o := w.get(); o.Verdict != row.get {
					t.Errorf("GET: %v %q, want %v", o.Verdict, o.Value, row.get)
				}
				if o := w.locker.Exists(t.Context(), 0, []byte(key)); o.Verdict != row.exists {
					t.Errorf("EXISTS: %v, want %v", o.Verdict, row.exists)
				}
			})
		})
	}
}
