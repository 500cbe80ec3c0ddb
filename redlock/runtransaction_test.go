package redlock

import (
	"testing"
	"time"
)

// Transactions that delete whatever they find.

func (s *liveSet) transaction(r RunRequest, commands ...[]string) Outcome {
	for _, command := range commands {
		r.Transaction = append(r.Transaction, bytesOf(command))
	}
	return s.Run(s.t.Context(), r)
}

// The first look of a transaction finds a lock that has ended on most masters. Meanwhile another
// client takes the lock, and the transaction spares it, as a DEL does.
func TestRunATransactionSparesALockThatCameAfterItsFirstLook(t *testing.T) {
	s := startLiveSet(t, 5)
	cfg := *s.settings()
	cfg.Retry = Retry{Count: 3, Delay: time.Millisecond}
	s.cfg.Store(&cfg)
	for i, holds := range []string{"me", "me", "a vote in vain"} {
		s.masters[i].must("SET", "lock", holds, "PX", "60000")
	}
	s.examined.afterLook(func(v Verdict) {
		if v == Won {
			t.Error("the first look found a quorum")
		}
		for _, m := range s.masters {
			m.must("SET", "lock", "you", "PX", "60000")
		}
	})
	keys := bytesOf([]string{"lock"})
	if o := s.transaction(RunRequest{Keys: keys, Deletes: keys}, []string{"DEL", "lock"}); o.Verdict != NoQuorum || o.Voting != 5 {
		t.Errorf("%v %q, %s", o.Verdict, o.Reply, o.NoQuorumError())
	}
	s.awaitIdle()
	for i, m := range s.masters {
		if got := string(m.must("GET", "lock")); got != "$3\r\nyou\r\n" {
			t.Errorf("master %d has %q", i+1, got)
		}
	}
}

// If the copies of a lock differ for good, they are mended, so that the client's next attempt finds a
// quorum.
func TestTimelineCopiesThatATransactionFindsDifferentAreMended(t *testing.T) {
	lock := bytesOf([]string{key})
	for name, try := range map[string]func(w *timeline) Outcome{
		"DEL": func(w *timeline) Outcome {
			return w.locker.Run(t.Context(), RunRequest{Keys: lock, Deletes: lock, Transaction: [][][]byte{bytesOf([]string{"DEL", key})}})
		},
		"WATCH": func(w *timeline) Outcome {
			_, o := w.locker.Watch(t.Context(), 0, lock)
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
				w.put("B A A B C", time.Minute)
				if o := try(w); !o.Split() {
					t.Errorf("%v %q", o.Verdict, o.Reply)
				}
				w.elapse(4 * second)
				w.wantValues("B B B B B")
			})
		})
	}
}
