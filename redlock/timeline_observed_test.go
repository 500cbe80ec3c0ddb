package redlock

import (
	"bytes"
	"fmt"
	"redlock-proxy/redlock/marker"
	"redlock-proxy/redlock/scan"
	"redlock-proxy/redlock/toymaster"
	"strings"
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

// A client that others always outrun is told so after a while.
func TestTimelineATokenIsNotTriedForEver(t *testing.T) {
	onTimeline(t, "ok@20ms ok@20ms ok@20ms ok@20ms ok@20ms", func(t *testing.T, w *timeline) {
		w.mustAcquire(tokenA, 20*second)
		w.mustToken(w.locker, 0)
		raiseTokens(w, 1000)
		for _, m := range w.masters {
			m.Watch = func(x toymaster.Execution) {
				if strings.Contains(string(bytes.Join(x.Args, nil)), tokenA) { // the others are always a thousand tokens ahead
					text, last := marker.CutToken(m.Value(marker.Key))
					m.Put(marker.Key, fmt.Sprintf("%s token=%d", text, last+1000), 0)
				}
			}
		}
		began := time.Now()
		if o := tokenOf(t, w.locker, 0, tokenA); o.Verdict != NoQuorum || !o.Outrun || time.Since(began) > 3*second {
			t.Errorf("after %v: %+v", time.Since(began), o)
		}
	})
}

// A database of any number is ready to be polled without a wait, once a quorum has voted there.
func TestTimelineTheLastDatabaseIsPreparedOnce(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		const last = marker.Databases - 1
		for _, m := range w.masters {
			m.Databases = marker.Databases
		}
		for end := time.Now().Add(time.Hour); acquireIn(t, w.locker, last, tokenA) != Won; w.settle() {
			if time.Now().After(end) {
				t.Fatal("no lock is granted there") // it was marked by nobody in advance, so it is quarantined at first
			}
		}
		if !w.locker.masters.IsPrepared(last) {
			t.Error("each command there leaves the loop")
		}
	})
}

// A cursor of SCAN is nothing to another run of the server, which has another table. So a walk
// does not count a master that restarts meanwhile, also if it votes again before the next page.
func TestTimelineAWalkDoesNotCountAMasterThatRestarts(t *testing.T) {
	for restarted, want := range map[int]bool{1: true, 2: true, 3: false} {
		onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
			w.put("A A A A A", time.Hour)
			shown := 0
			all := w.locker.Reader().Walk(t.Context(),
				func(int, []byte) bool { return true },
				func(_ int, k []byte, _ []scan.Copy) bool {
					if string(k) != key {
						return true
					}
					if shown++; shown <= restarted {
						w.masters[shown-1].Kill()
						w.elapse(second)
						w.masters[shown-1].Restart(true)
						w.elapse(5 * time.Minute)
						w.wantStandings(w.locker, "CCCCC")
					}
					return true
				})
			if all != want || shown != min(5, 3+restarted) {
				t.Errorf("%d restarted: the walk showed the key %d times, and was complete: %v", restarted, shown, all)
			}
		})
	}
}
