package redlock

import (
	"testing"
	"time"
)

// Timelines that an Observer steers.

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

// The masters end just when a lock was won. Only who won it holds it.
func TestTimelineALockThatWasWonAtTheEndIsWonByOne(t *testing.T) {
	cfg := timelineConfig()
	end := &endsMasters{}
	cfg.Observer = end
	onTimelineWith(t, cfg, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		end.timeline = w
		first, next := w.beginAcquire(tokenA, 10*second), w.beginAcquire(tokenB, 10*second)
		if one, other := first().Verdict, next().Verdict; one != Won || other != NoQuorum {
			t.Errorf("the first: %v, the second: %v", one, other)
		}
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
