package redlock

import (
	"context"
	"testing"
	"time"
)

// lateGrant takes the lock through a proxy whose link to master 5 is slow. It releases the
// lock through another proxy before the question reaches that master.
func lateGrant(t *testing.T, value string, ttl time.Duration, release func(other *Locker) Outcome, then func(w *timeline, other *Locker)) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		other := w.another(timelineConfig())
		w.links[4].setDelay(30*time.Millisecond, 0)
		w.mustAcquire(value, ttl)
		if o := release(other); o.Verdict != Won {
			t.Fatalf("%+v", o)
		}
		w.elapse(3 * time.Millisecond)
		w.wantValues("- - - - -")
		then(w, other)
	})
}

func byDEL(l *Locker) Outcome {
	return l.Release(context.Background(), ReleaseRequest{Key: []byte(key)})
}

func byScript(l *Locker) Outcome {
	return l.Run(context.Background(), RunRequest{
		Keys: [][]byte{[]byte(key)},
		Args: [][]byte{[]byte("EVAL"), []byte(compareAndDelete), []byte("1"), []byte(key), []byte(tokenA)},
	})
}

func TestTimelineAReleaseIsSentAgainBehindALateGrant(t *testing.T) {
	for _, ttl := range []time.Duration{0, 10 * second} {
		for _, release := range []func(*Locker) Outcome{byDEL, byScript} {
			lateGrant(t, tokenA, ttl, release, func(w *timeline, _ *Locker) {
				w.elapse(35 * time.Millisecond)
				w.wantValues("- - - - A")
				w.elapse(200 * time.Millisecond)
				w.wantValues("- - - - -")
			})
		}
	}
}

func TestTimelineAReleaseIsNotSentAgainWhereTheKeyWasTakenSince(t *testing.T) {
	for _, release := range []func(*Locker) Outcome{byDEL, byScript} {
		lateGrant(t, tokenA, 0, release, func(w *timeline, other *Locker) {
			// The same client takes it again at once, with the same value.
			o := other.Acquire(context.Background(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA)})
			if o.Verdict != Won {
				w.t.Fatalf("%+v", o)
			}
			w.elapse(second)
			w.wantValues("A A A A A")
		})
	}
}

func TestTimelineAReleaseByAConstantValueIsNotSentAgain(t *testing.T) {
	lateGrant(t, short, 0, byDEL, func(w *timeline, _ *Locker) {
		w.mustAcquire(short, 0) // through another proxy than the release
		w.elapse(second)
		w.wantValues("1 1 1 1 1")
	})
}

// A release by value finds no quorum. Masters that were away get it, as far as it is still
// the same lock.
func TestTimelineAReleaseByValueWaitsForMastersThatAreAway(t *testing.T) {
	onTimeline(t, "ok ok kill kill kill", func(t *testing.T, w *timeline) {
		w.put("A A A B A", time.Minute)
		w.masters[4].put(key, tokenA, 2*time.Minute) // taken again since
		release := func(until time.Time) Outcome {
			return w.locker.Release(context.Background(), ReleaseRequest{Key: []byte(key), Value: []byte(tokenA), Until: until})
		}
		if o := release(time.Now().Add(time.Minute)); o.Verdict != NoQuorum {
			t.Errorf("%+v", o)
		}
		for _, m := range w.masters[2:] {
			m.restart(true)
		}
		w.elapse(45 * second)
		w.wantValues("- - - B A")
		w.put("A A A A A", 2*time.Minute)
		if o := release(time.Now().Add(time.Minute)); o.Verdict != Lost {
			t.Errorf("a lock that ends later: %+v", o)
		}
		w.elapse(0)
		w.wantValues("A A A A A")
	})
}
