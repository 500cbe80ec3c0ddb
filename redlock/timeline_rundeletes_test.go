package redlock

import (
	"context"
	"testing"
	"time"
)

// A deletion that does not look whose lock it is must not delete votes. Otherwise two clients could
// hold the lock: B has the votes of two masters when A deletes. C gets these two votes and a third,
// and B gets the vote of another master.
func TestTimelineADeletionThatLooksAtNothingDeletesNoVotes(t *testing.T) {
	lock := bytesOf([]string{key})
	for name, r := range map[string]RunRequest{
		"a script":            {Args: bytesOf([]string{"EVAL", deleteAnyway, "1", key})},
		"a script in MULTI":   {Transaction: [][][]byte{bytesOf([]string{"EVAL", deleteAnyway, "1", key})}},
		"a time that is over": {Args: bytesOf([]string{"PEXPIRE", key, "0", "XX"}), Deletes: lock},
		"the same in MULTI":   {Transaction: [][][]byte{bytesOf([]string{"PEXPIRE", key, "0", "XX"})}, Deletes: lock},
	} {
		t.Run(name, func(t *testing.T) {
			// The answers of the first two masters come late, and the undos that follow them.
			onTimeline(t, "ok@20ms ok@20ms ok ok ok", func(t *testing.T, w *timeline) {
				r.Keys = lock
				b, links := w.connect("b", timelineConfig())
				c, others := w.connect("c", timelineConfig())
				w.others = append(w.others, b, c)
				links[2].setDelay(15*time.Millisecond, 0)
				links[3].silence()
				links[4].silence()
				others[2].silence()
				others[4].silence()
				acquire := func(l *Locker, value string) chan Outcome {
					ended := make(chan Outcome, 1)
					go func() {
						ended <- l.Acquire(context.Background(), AcquireRequest{Key: []byte(key), Value: []byte(value), TTL: time.Minute})
					}()
					return ended
				}
				byB := acquire(b, tokenB)
				w.elapse(time.Millisecond)
				w.wantValues("B B - - -")
				go w.locker.Run(context.Background(), r)
				w.elapse(2 * time.Millisecond)
				byC := acquire(c, tokenC)
				if o, p := <-byB, <-byC; o.Verdict == Won && p.Verdict == Won {
					t.Error("two clients hold the lock")
				}
				w.elapse(0)
			})
		})
	}
}

// A quorum of guards says that keys have changed. Then a late guard is not followed by the transaction.
func TestTimelineATransactionDoesNotFollowALateGuardIfItWasAborted(t *testing.T) {
	onTimeline(t, "ok ok ok ok@20ms ok@20ms", func(t *testing.T, w *timeline) {
		lock := bytesOf([]string{key})
		w.put("A A A A A", time.Minute)
		watch, _ := w.locker.Watch(context.Background(), 0, lock)
		w.elapse(0)
		w.put("B B B - -", time.Minute)
		o := w.locker.Run(context.Background(), RunRequest{Keys: lock, Transaction: [][][]byte{bytesOf([]string{"DEL", key})}, Watches: []*Watch{watch}})
		wantReply(t, o, "*-1\r\n")
		w.elapse(0)
		for i := range w.masters {
			if n := w.countHeard(i, "DEL"); n > 0 {
				t.Errorf("master %d got the DEL", i+1)
			}
		}
	})
}

// A master whose copy differs does not get the deletion of a hash. No other request may ever find that
// copy, so it is mended at once.
func TestRunACollectionThatWasDeletedElsewhereIsMended(t *testing.T) {
	s := startLiveSet(t, 3)
	cfg := *s.settings()
	cfg.MasterTimeout = second // so that copies are quiet soon
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(t.Context())
	s.Locker = l
	s.awaitVotes()
	for i, m := range s.masters {
		m.must("HSET", "lock", "me", []string{"1", "1", "2"}[i])
	}
	wantReply(t, s.run([]string{"lock"}, "EVAL", deleteAnyway, "1", "lock"), ":1\r\n")
	s.eventuallyGone("lock")
}
