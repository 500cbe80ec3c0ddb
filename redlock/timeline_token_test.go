package redlock

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/toymaster"
)

// Fencing tokens.

// tokenOf asks for a token for a value of the timeline's lock.
func tokenOf(t *testing.T, l *Locker, db int, value string) Outcome {
	return l.Token(t.Context(), TokenRequest{DB: db, Key: []byte(key), Value: []byte(value)})
}

// mustToken asks for a token for tokenA, which must be larger than every one before.
func (w *timeline) mustToken(l *Locker, before int64) int64 {
	w.t.Helper()
	o := tokenOf(w.t, l, 0, tokenA)
	if o.Verdict != Won || o.Number <= before {
		w.t.Fatalf("after the token %d: %+v", before, o)
	}
	return o.Number
}

// holdForLong takes the lock for as long as a quarantine can cover.
func (w *timeline) holdForLong() { w.t.Helper(); w.mustAcquire(tokenA, 10*time.Minute) }

func TestTimelineATokenIsForTheHolderOnly(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		began := time.Now().UnixMilli()
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != Lost {
			t.Errorf("before the lock is taken: %+v", o)
		}
		w.mustAcquire(tokenA, 20*second)
		first := w.mustToken(w.locker, began-1)
		if next := w.mustToken(w.locker, first); next != first+1 {
			t.Errorf("%d follows %d", next, first)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		if o := w.locker.Token(gone, TokenRequest{Key: []byte(key), Value: []byte(tokenA)}); !o.Abandoned {
			t.Errorf("for a client that is gone: %+v", o)
		}
		if o := tokenOf(t, w.locker, 0, tokenB); o.Verdict != Lost || o.Err != "" {
			t.Errorf("for another value: %+v", o)
		}
		w.sleep(20 * second)
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != Lost {
			t.Errorf("for a lock that has ended: %+v", o)
		}
		w.put("A A B B -", 20*second)
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != Lost {
			t.Errorf("for a minority's value: %+v", o)
		}
	})
}

// Others were given tokens first. The client goes while it hears of that.
func TestTimelineNoTokenIsTriedAgainForAClientThatIsGone(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 20*second)
		w.mustToken(w.locker, 0)
		raiseTokens(w, 1000)
		gone := w.goneAfter(500 * time.Microsecond)
		if o := w.locker.Token(gone, TokenRequest{Key: []byte(key), Value: []byte(tokenA)}); !o.Abandoned {
			t.Errorf("%+v", o)
		}
	})
}

func TestTimelineATokenNeedsValidity(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 20*second)
		w.mustToken(w.locker, 0)
		w.put("A A A A A", 25*time.Millisecond)
		for _, k := range w.links {
			k.SetDelay(10*time.Millisecond, 15*time.Millisecond)
		}
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != Lost {
			t.Errorf("for a lock that has ended when the masters' answers come: %+v", o)
		}
	})
}

func TestTimelineATokenNeedsAQuorum(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 20*second)
		last := w.mustToken(w.locker, 0)
		w.play("ok ok ok pause kill")
		w.put("A A A A A", 20*second)
		last = w.mustToken(w.locker, last)
		w.play("ok ok pause pause kill")
		w.put("A A A A A", 20*second)
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != NoQuorum || !strings.HasPrefix(o.NoQuorumError(), "QUORUMLOST ") {
			t.Errorf("after %d, with two of five masters: %+v", last, o)
		}
	})
}

// After the largest token that a script can calculate with, no process gives another.
func TestTimelineTheLargestTokenIsTheLast(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 20*second)
		w.mustToken(w.locker, 0)
		for _, m := range w.masters {
			text, _ := marker.CutToken(m.Value(marker.Key))
			m.Put(marker.Key, fmt.Sprintf("%s token=%d", text, marker.MostToken-1), 0)
		}
		w.elapse(second)
		if last := w.mustToken(w.locker, 0); last != marker.MostToken {
			t.Errorf("%d is not the largest token", last)
		}
		for _, l := range []*Locker{w.locker, w.another(timelineConfig())} {
			if o := tokenOf(t, l, 0, tokenA); o.Verdict != Lost || !strings.Contains(o.Err, "largest fencing token") {
				t.Errorf("after the largest token: %+v", o)
			}
		}
	})
}

// Clients of several processes ask at the same moment, for locks in several databases.
func TestTimelineNoTokenIsGivenTwice(t *testing.T) {
	onTimeline(t, "ok ok@2ms ok@3ms ok@4ms ok@5ms", func(t *testing.T, w *timeline) {
		lockers := []*Locker{w.locker, w.another(timelineConfig()), w.another(timelineConfig())}
		w.settle()
		for db := range 2 {
			if v := acquireIn(t, w.locker, db, tokenA); v != Won {
				t.Fatal(v)
			}
		}
		clients := w.crew()
		given, largest := map[int64]bool{}, int64(0)
		for n := range 9 {
			clients.Go(func() {
				for range 10 {
					before := largest
					o := tokenOf(t, lockers[n%3], n%2, tokenA)
					if o.Verdict != Won || given[o.Number] || o.Number <= before {
						t.Errorf("after %d: %+v, given twice: %v", before, o, given[o.Number])
					}
					given[o.Number], largest = true, max(largest, o.Number)
				}
			})
		}
		clients.Wait()
	})
}

// All masters are restarted empty, one after the other. Nobody asks for a token meanwhile,
// and then a process does that has just started.
func TestTimelineTokensSurviveARollingRestart(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.mustAcquire(tokenA, 20*second)
		last := w.mustToken(w.locker, 0)
		raiseTokens(w, 50_000_000) // so many that the clock does not help
		last = w.mustToken(w.locker, last+49_000_000)
		for i := range w.masters {
			w.restart(false, i)
			w.sleep(time.Minute)
		}
		w.wantStandings(w.locker, "CCCCC")
		fresh := w.another(timelineConfig())
		w.settle()
		w.mustAcquire(tokenA, 20*second)
		w.mustToken(fresh, last)
	})
}

// raiseTokens adds to the tokens on record.
func raiseTokens(w *timeline, by int64) {
	for _, m := range w.masters {
		text, token := marker.CutToken(m.Value(marker.Key))
		mark, _ := marker.Parse(text)
		mark.Token = token + by
		m.Put(marker.Key, mark.String(), 0)
	}
}

// A minority forgets its record, and one of the others is the only one that was there when
// the last token was given.
func TestTimelineAMasterThatForgotLearnsTheTokenBeforeItVotes(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.holdForLong()
		first := w.mustToken(w.locker, 0)
		raiseTokens(w, 50_000_000)
		w.mustToken(w.locker, first+49_000_000)
		w.play("ok ok ok kill kill")
		last := w.mustToken(w.locker, first+50_000_000)
		for _, m := range w.masters[3:] {
			m.Restart(true) // they have recorded an earlier token
		}
		w.settle()
		w.restart(false, 0, 1) // two of the three that have recorded the last one
		w.sleep(11 * time.Minute)
		w.wantStandings(w.locker, "CCCCC")
		fresh := w.another(timelineConfig())
		w.settle()
		w.play("ok ok kill ok ok") // and now the third is away
		w.mustAcquire(tokenA, 10*time.Minute)
		w.mustToken(fresh, last)
	})
}

// If too few others remember, the record begins at the time. So it does if all have
// forgotten, in a new set.
func TestTimelineTokensBeginAboveTheClock(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		w.mustAcquire(tokenA, 20*second)
		last := w.mustToken(w.locker, 0)
		w.restart(false, 0, 1, 2)
		w.sleep(time.Minute)
		for i := range 3 {
			mark, _ := marker.Parse(w.masters[i].Value(marker.Key))
			if now := time.Now().Add(-time.Minute).UnixMilli(); mark.Token < now {
				t.Errorf("master %d has %d on record, and the time was %d", i+1, mark.Token, now)
			}
		}
		w.mustAcquire(tokenA, 20*second)
		last = w.mustToken(w.locker, last)
		w.restart(false, 0, 1, 2, 3, 4)
		w.sleep(time.Minute)
		w.mustAcquire(tokenA, 20*second)
		w.mustToken(w.another(timelineConfig()), last)
	})
}

// Database 0 has the record of all databases.
func TestTimelineTokensOfADatabaseNeedTheRecordOfDatabase0(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.settle()
		if v := acquireIn(t, w.locker, 3, tokenA); v != Won {
			t.Fatal(v)
		}
		first := tokenOf(t, w.locker, 3, tokenA)
		if first.Verdict != Won {
			t.Fatalf("%+v", first)
		}
		for _, m := range w.masters[:3] {
			m.FlushDB(0)
		}
		if o := tokenOf(t, w.locker, 3, tokenA); o.Verdict != NoQuorum {
			t.Errorf("without the record of a quorum: %+v", o)
		}
		w.sleep(time.Minute)
		if v := acquireIn(t, w.locker, 3, tokenA); v != Won {
			t.Fatal(v)
		}
		if o := tokenOf(t, w.locker, 3, tokenA); o.Verdict != Won || o.Number <= first.Number {
			t.Errorf("after %d: %+v", first.Number, o)
		}
	})
}

func TestRealMastersGiveTokens(t *testing.T) {
	set := startLiveSet(t, 3)
	for db := range 2 {
		lock := AcquireRequest{DB: db, Key: []byte(key), Value: []byte(tokenA), TTL: time.Minute}
		if o := set.Acquire(t.Context(), lock); o.Verdict != Won {
			t.Fatalf("%+v", o)
		}
	}
	before := time.Now().Add(-time.Minute).UnixMilli()
	for n := range 6 {
		o := tokenOf(t, set.Locker, n%2, tokenA)
		if o.Verdict != Won || o.Number <= before {
			t.Fatalf("after %d: %+v", before, o)
		}
		before = o.Number
	}
	if o := tokenOf(t, set.Locker, 0, tokenB); o.Verdict != Lost || o.Err != "" {
		t.Errorf("for another value: %+v", o)
	}
	for _, m := range set.masters {
		m.must("DEL", key)
		m.must("HSET", key, "field", tokenA)
	}
	if o := tokenOf(t, set.Locker, 0, tokenA); o.Verdict != Lost || o.Err != toymaster.WrongType {
		t.Errorf("for a lock that is no string: %+v", o)
	}
}
