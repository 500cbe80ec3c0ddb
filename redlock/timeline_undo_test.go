package redlock

import (
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/stream"
)

// Undos: if a request was not won, what it created is undone, in order behind it. Nothing
// else is undone.

func TestTimelineAnUndoFollowsItsAcquireOnTheSameStream(t *testing.T) {
	onTimeline(t, "pause ok pause pause pause", func(t *testing.T, w *timeline) {
		if o, took := w.acquire(tokenA, 10*second); o.Verdict != NoQuorum || took != timeout {
			t.Fatalf("%v after %v", o.Verdict, took)
		}
		w.elapse(0)
		w.wantValues("- - - - -")
		for _, i := range []int{0, 2, 3, 4} {
			w.wantHeard(i, "")
			w.masters[i].Resume()
		}
		w.elapse(0)
		w.wantValues("- - - - -")
		w.wantHeard(0, "SET, release.lua")
		w.wantHeard(4, "SET, release.lua")
	})
}

func TestTimelineALateVoteIsUndone(t *testing.T) {
	onTimeline(t, "no no no ok@20ms ok@80ms", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, Lost, time.Millisecond)
		w.wantValues("X X X A A")
		w.elapse(25 * time.Millisecond)
		w.wantValues("X X X - A")
		w.elapse(second)
		w.wantValues("X X X - -")
	})
}

func TestTimelineALateVoteForALockThatWasWonIsKept(t *testing.T) {
	onTimeline(t, "ok ok ok ok@20ms ok@80ms", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 10*second)
		w.elapse(second)
		w.wantValues("A A A A A")
	})
}

// pausedProxy stops the asking goroutine at the moment when it learns, for the nth time,
// that a master cannot be asked. A busy machine may do the same.
type pausedProxy struct {
	nobody
	*timeline
	pause time.Duration
	on    int32 // which time, from 1
	times int32
}

func (p *pausedProxy) Voted(_ string, v Vote, after time.Duration, _ time.Time) {
	if v != Failed || after != 0 {
		return
	}
	if p.times++; p.times == p.on {
		p.sleep(p.pause)
	}
}

func TestTimelineAVoteReadAfterTheDeadlineIsLate(t *testing.T) {
	cfg := timelineConfig()
	paused := &pausedProxy{pause: 90 * time.Millisecond, on: 1}
	cfg.Observer = paused
	onTimelineWith(t, cfg, "ok@70ms ok@70ms ok@70ms ok@70ms kill", func(t *testing.T, w *timeline) {
		paused.timeline = w
		// The votes are there before the ballot looks at its clock again.
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, NoQuorum, 90*time.Millisecond)
		w.elapse(second)
		w.wantValues("- - - - -")
	})
}

func TestTimelineAnUnknownVoteIsUndoneFirstOnTheNewStream(t *testing.T) {
	onTimeline(t, "ok@1ms cut@5ms no no no", func(t *testing.T, w *timeline) {
		o, took := w.acquire(tokenA, 10*second)
		w.wantVerdict(o, took, Lost, time.Millisecond)
		w.elapse(0)
		w.wantValues("- - X X X")
		w.wantHeard(1, "SET, CLIENT KILL, release.lua")
	})
	onTimeline(t, "ok@1ms cut@5ms no no ok@9ms", func(t *testing.T, w *timeline) {
		// The connection breaks before the verdict.
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.elapse(0)
		w.wantValues("- - X X -")
	})
}

func TestTimelineAnUnknownVoteWithAShortValueIsLeftToItsTTL(t *testing.T) {
	onTimeline(t, "ok@1ms cut@5ms no no no", func(t *testing.T, w *timeline) {
		if o, _ := w.acquire(short, 10*second); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.elapse(0)
		w.wantValues("- 1 X X X")
		w.wantHeard(1, "SET, CLIENT KILL")
		w.elapse(10 * second)
		if v := w.masters[1].Value(key); v == short {
			t.Error("it is still there") // gone, or made equal to what a quorum has
		}
	})
}

// The shortest value that is nobody else's.
func TestTimelineAnUnknownVoteWithAValueLongEnoughIsUndone(t *testing.T) {
	onTimeline(t, "ok@1ms cut@5ms no no no", func(t *testing.T, w *timeline) {
		if o, _ := w.acquire(strings.Repeat("x", stream.ShortValue), 10*second); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.elapse(0)
		w.wantValues("- - X X X")
	})
}

// The connection breaks before the undo. The next one brings it, and it recognises what it is to undo.
func TestTimelineAnUndoOfAShortValueThatComesLateIsDone(t *testing.T) {
	onTimeline(t, "ok ok mute mute mute", func(t *testing.T, w *timeline) {
		w.beginAcquire(short, 60*second)
		w.sleep(timeout / 2)
		w.links[0].LoseQuestion(time.Millisecond)
		w.elapse(3 * second)
		if v := w.masters[0].Value(key); v != "" {
			t.Errorf("the first master holds %q", v)
			w.dump()
		}
	})
}

func TestTimelineAShortValueThatCertainlyWasGrantedIsUndone(t *testing.T) {
	onTimeline(t, "ok ok no no no", func(t *testing.T, w *timeline) {
		if o, _ := w.acquire(short, 10*second); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.elapse(0)
		w.wantValues("- - X X X")
	})
}

func TestTimelineAQuestionThatWasNeverSentIsNotUndone(t *testing.T) {
	onTimeline(t, "ok@1ms kill no no no", func(t *testing.T, w *timeline) {
		w.masters[1].Put(key, tokenA, 0) // an equal value that is not this request's
		if o, _ := w.acquire(tokenA, 10*second); o.Verdict != Lost {
			t.Fatal(o.Verdict)
		}
		w.masters[1].Restart(true)
		w.elapse(5 * second)
		w.wantHeard(1, "")
	})
}

func TestTimelineAnUndoDoesNotReachTheNextTryOfTheSameRequest(t *testing.T) {
	cfg := timelineConfig()
	cfg.Retry = Retry{Count: 1, Delay: 0}
	onTimelineWith(t, cfg, "ok@1ms lost@1ms ok@1ms ok@6ms ok@4ms", func(t *testing.T, w *timeline) {
		// Master 2 is connected anew before the verdict, when its undo is due, and
		// answers slowly from then on. The next try has the same value.
		w.put("- - B C -", time.Hour)
		w.After(5*time.Millisecond, func() {
			w.links[1].ReplyDelay = 20 * time.Millisecond
		})
		o, _ := w.acquire(tokenA, 10*second)
		w.elapse(0)
		w.wantValues("A A B C A")
		if o.Verdict != Won {
			t.Fatal(o.Verdict)
		}
	})
}

func TestTimelineWhatAClientThatHasGoneWonIsOwedUntilItIsUndone(t *testing.T) {
	onTimeline(t, "ok@5ms ok@5ms ok@5ms ok@30ms ok@30ms", func(t *testing.T, w *timeline) {
		ctx := w.goneAfter(time.Millisecond)
		w.locker.Acquire(ctx, AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: 10 * second})
		w.mustAcquire(tokenB, 10*second)
		w.elapse(0)
		w.wantValues("B B B - -")
		w.wantHeard(3, "SET, release.lua")
		w.wantHeard(4, "SET, release.lua")
	})
}

// idleObserver notes whether the Locker passes for idle while it learns of a vote.
type idleObserver struct {
	nobody
	locker *Locker
	idle   bool
}

func (o *idleObserver) Voted(string, Vote, time.Duration, time.Time) {
	if o.locker != nil && o.locker.masters.Idle() {
		o.idle = true
	}
}

// A process that ends waits for the undo of an answer that has only just come.
func TestTimelineAnAnswerThatIsBeingHandledIsNotIdle(t *testing.T) {
	told := &idleObserver{}
	cfg := timelineConfig()
	cfg.Observer = told
	onTimelineWith(t, cfg, "ok", func(t *testing.T, w *timeline) {
		told.locker = w.locker
		w.locker.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: second})
		if told.idle {
			t.Error("it passes for idle")
		}
	})
}
