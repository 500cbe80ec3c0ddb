package redlock

import (
	"context"
	"testing"
	"time"
)

// What requests on one key do to those that wait for their turn.

// inLine begins an acquire, and returns when it waits behind those that began before it.
func (w *timeline) inLine(value string) (wait func() Outcome) {
	wait = w.beginAcquire(value, 10*second)
	w.Settle()
	return wait
}

// wantOutcome waits for the outcome of an acquire.
func (w *timeline) wantOutcome(who string, wait func() Outcome, verdict Verdict) {
	w.t.Helper()
	if got := wait(); got.Verdict != verdict {
		w.t.Errorf("%s: %v, want %v", who, got.Verdict, verdict)
	}
}

// A refusal answers those that wait only if no master granted: the votes of one that was refused may
// have been the reason why nobody won.
func TestTimelineASplitVoteDoesNotAnswerThoseThatWait(t *testing.T) {
	// The grants come first, so that the ballot knows of them when it is lost.
	onTimeline(t, "ok@5ms ok@5ms ok@5ms ok@4ms ok@4ms", func(t *testing.T, w *timeline) {
		w.put("X X X - -", 8*time.Millisecond)
		first, second, third := w.inLine(tokenA), w.inLine(tokenB), w.inLine(tokenC)
		w.wantOutcome("the first", first, Lost)
		w.wantOutcome("the second", second, Lost)
		w.wantOutcome("the third", third, Won)
	})
}

// A client that goes while it waits for its turn asks nobody, and nobody refuses it.
func TestTimelineAClientThatGoesWhileItWaitsAsksNobody(t *testing.T) {
	for how, ask := range map[string]func(ctx context.Context, l *Locker) Outcome{
		"SET NX": func(ctx context.Context, l *Locker) Outcome {
			return l.Acquire(ctx, AcquireRequest{Key: []byte(key), Value: []byte(tokenB), TTL: second})
		},
		"GETSET": func(ctx context.Context, l *Locker) Outcome {
			return l.Run(ctx, RunRequest{Keys: [][]byte{[]byte(key)}, Args: bytesOf([]string{"GETSET", key, tokenB})})
		},
		"PEXPIRE": func(ctx context.Context, l *Locker) Outcome {
			return l.Extend(ctx, ExtendRequest{Key: []byte(key), TTL: second})
		},
	} {
		t.Run(how, func(t *testing.T) {
			onTimeline(t, "ok@40ms ok@40ms ok@40ms ok@40ms ok@40ms", func(t *testing.T, w *timeline) {
				holder := w.inLine(tokenA)
				ctx := w.goneAfter(10 * time.Millisecond)
				began := time.Now()
				if o := ask(ctx, w.locker); o.Verdict != NoQuorum || time.Since(began) != 10*time.Millisecond {
					t.Errorf("%v after %v", o.Verdict, time.Since(began))
				}
				w.wantOutcome("the holder", holder, Won)
				w.elapse(0)
				w.wantHeard(0, "SET")
			})
		})
	}
}

// The masters end just when a lock was won. Only who won it holds it.
func TestTimelineALockThatWasWonAtTheEndIsWonByOne(t *testing.T) {
	cfg := timelineConfig()
	end := &endsMasters{}
	cfg.Observer = end
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		end.timeline = w
		first := w.inLine(tokenA)
		second := w.inLine(tokenB)
		w.wantOutcome("the first", first, Won)
		w.wantOutcome("the second", second, NoQuorum)
	})
}

// endsMasters ends all masters when an acquire was won.
type endsMasters struct {
	nobody
	*timeline
}

func (e *endsMasters) Decided(kind Kind, verdict Verdict, _ time.Duration) {
	if kind != KindAcquire || verdict != Won {
		return
	}
	for _, m := range e.masters {
		m.Kill()
	}
	e.sleep(time.Millisecond) // until it is noticed
}

// Without a quorum an acquire is not tried again, unless masters were spared.
func TestTimelineALostQuorumIsToldAfterOneTimeout(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3}
	onTimelineWith(t, cfg, "ok ok pause pause pause", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, NoQuorum, timeout)
	})
}

// A lock that was won although a master still owed an answer was won.
func TestTimelineALockThatWasWonWithoutASparedMasterIsNotTriedAgain(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 1}
	onTimelineWith(t, cfg, "ok ok ok ok ok@40ms", func(t *testing.T, w *timeline) {
		w.put("X X X X -", 3*time.Millisecond)
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.sleep(3 * time.Millisecond)
		o, took := w.acquire(tokenB, 10*second)
		w.wantVerdict(o, took, Won, time.Millisecond)
	})
}

// SET NX GET answers no copy of its own that is about to be undone, because its client would believe
// that it holds the lock.
func TestTimelineWhoAsksForTheHolderIsNotToldItsOwnUndoneVotes(t *testing.T) {
	onTimeline(t, "ok ok@20ms ok@20ms ok ok", func(t *testing.T, w *timeline) {
		w.put("X - - B C", 10*second)
		if o := w.acquireGet(tokenA); o.Verdict != NoQuorum {
			t.Errorf("%v %q", o.Verdict, o.Value)
		}
	})
}

func (w *timeline) acquireGet(value string) Outcome {
	return w.locker.Acquire(w.t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(value), TTL: 10 * second, Get: true})
}

// Who holds the lock with the same value already is told that value.
func TestTimelineWhoAsksForTheHolderMayBeTheHolder(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", 10*second)
		if o := w.acquireGet(tokenA); o.Verdict != Lost || string(o.Value) != tokenA {
			t.Errorf("%v %q", o.Verdict, o.Value)
		}
	})
}

// The copies that stood in the way end before SET NX GET looks for the holder. It is tried again as
// often as the settings say.
func TestTimelineWhoAsksForAHolderThatEndsTriesAgain(t *testing.T) {
	for count, verdict := range []Verdict{NoQuorum, Won} {
		cfg := timelineConfig()
		cfg.Retry = Retry{Count: count}
		onTimelineWith(t, cfg, "ok@5ms ok@5ms ok@5ms ok@5ms ok@5ms", func(t *testing.T, w *timeline) {
			w.put("X X X - -", 3*time.Millisecond)
			if o := w.acquireGet(tokenA); o.Verdict != verdict {
				t.Errorf("with %d tries more: %v, want %v", count, o.Verdict, verdict)
			}
		})
	}
}

// If the look for the holder has no quorum, SET NX GET is not tried again.
func TestTimelineALostQuorumIsToldWhoAsksForTheHolder(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 3}
	onTimelineWith(t, cfg, "ok@5ms ok@5ms ok@5ms ok@5ms ok@5ms", func(t *testing.T, w *timeline) {
		w.put("X X X X X", 10*second)
		w.After(3*time.Millisecond, func() { w.play("pause pause pause pause pause") })
		began := time.Now()
		o := w.acquireGet(tokenA)
		w.wantVerdict(o, time.Since(began), NoQuorum, 5*time.Millisecond+timeout)
	})
}
