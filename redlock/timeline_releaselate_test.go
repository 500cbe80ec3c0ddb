package redlock

import (
	"strconv"
	"testing"
	"time"
)

// A DEL may look again, and wait for copies that differ. Meanwhile the lock of its client and
// the votes of a client that is acquiring may end, and another client may take the lock.
func TestTimelineADELSparesALockThatCameAfterIt(t *testing.T) {
	for _, row := range []struct {
		name  string
		tries int
		ends  time.Duration
		taken func(w *timeline)
	}{
		{"before the second look", 1, time.Minute, func(w *timeline) {
			w.elapse(49 * time.Millisecond)
		}},
		{"before the Mender looks", 0, time.Minute, func(w *timeline) {
			w.elapse(60 * time.Millisecond)
			w.hearAgain()
		}},
		{"after the Mender has looked", 0, 300 * time.Millisecond, func(w *timeline) {
			w.elapse(second)
			w.hearAgain()
			for w.countHeard(0, "EXEC") < 2 {
				w.elapse(200 * time.Microsecond)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg := timelineConfig()
			cfg.Retry.Count = row.tries
			onTimelineWith(t, cfg, "ok ok ok mute mute", func(t *testing.T, w *timeline) {
				w.put("A A B A -", row.ends)
				ended := begin(w, func() Outcome { return byDEL(w.locker) })
				row.taken(w)
				w.put("C C C - C", time.Minute)
				if o := ended(); o.Verdict != NoQuorum {
					t.Errorf("%+v", o)
				}
				w.hearAgain()
				w.elapse(0)
				for _, i := range []int{0, 1, 2, 4} {
					if v := w.masters[i].value(key); v != tokenC {
						t.Errorf("master %d has %q", i+1, v)
					}
				}
			})
		})
	}
}

// hearAgain unmutes all links.
func (w *timeline) hearAgain() {
	for _, k := range w.links {
		k.unmute()
	}
}

// A counter may go on between the look and the deletion, which then finds nothing. It is the
// same lock, so the DEL deletes it. A counter that begins again is another lock.
func TestTimelineADELDeletesACounterThatGoesOn(t *testing.T) {
	for _, row := range []struct {
		is, becomes string
		verdict     Verdict
		after       string
	}{
		{"1", "2", Won, "- - - - -"},
		{"1", "-", Lost, "- - - - -"},
		{"2", "1", NoQuorum, "1 1 1 1 1"},
		{"1", tokenB, NoQuorum, "B B B B B"},
		{tokenA, tokenB, NoQuorum, "B B B B B"},
		{tokenA, tokenA + ", grown", Won, "- - - - -"},
	} {
		t.Run(row.is+" "+row.becomes, func(t *testing.T) {
			onTimeline(t, "ok@5ms ok@5ms ok@5ms ok@5ms ok@5ms", func(t *testing.T, w *timeline) {
				for _, m := range w.masters {
					m.put(key, row.is, time.Minute)
				}
				became := begin(w, func() Outcome { return byDEL(w.locker) })
				w.elapse(time.Millisecond) // the look has been executed
				for _, m := range w.masters {
					if row.becomes == "-" {
						m.remove(key)
					} else {
						m.put(key, row.becomes, time.Minute)
					}
				}
				if o := became(); o.Verdict != row.verdict {
					t.Errorf("%+v", o)
				}
				w.elapse(0)
				w.wantValues(row.after)
			})
		})
	}
}

// A counter goes on twice, so the DEL deletes it at its third try. It is done then, and spares the
// lock that another client takes.
func TestTimelineADELThatHasDeletedACounterLooksNoMore(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 1}
	onTimelineWith(t, cfg, "ok@5ms ok@5ms ok@5ms ok@5ms ok@5ms", func(t *testing.T, w *timeline) {
		var deleted func() Outcome
		for n, until := range []time.Duration{0, time.Millisecond, 11 * time.Millisecond} { // after each look
			w.elapse(until)
			for _, m := range w.masters {
				m.put(key, strconv.Itoa(n+1), time.Minute)
			}
			if n == 0 {
				deleted = begin(w, func() Outcome { return byDEL(w.locker) })
			}
		}
		for w.masters[0].value(key) != "" {
			w.elapse(time.Millisecond)
		}
		for _, m := range w.masters {
			m.put(key, "1", time.Minute)
		}
		if o := deleted(); o.Verdict != Won || string(o.Value) != "3" {
			t.Errorf("%+v", o)
		}
		w.wantValues("1 1 1 1 1")
	})
}
