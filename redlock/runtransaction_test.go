package redlock

import (
	"context"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
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
		s.all([]string{"SET", "lock", "you", "PX", "60000"})
	})
	keys := bytesOf([]string{"lock"})
	if o := s.transaction(RunRequest{Keys: keys, Deletes: keys}, []string{"DEL", "lock"}); o.Verdict != NoQuorum || o.Voting != 5 {
		t.Errorf("%v %q, %s", o.Verdict, o.Reply, o.NoQuorumError())
	}
	s.awaitIdle()
	s.wantEverywhere("lock", "you")
}

// A client watches one key, and deletes another that somebody is just acquiring. No master gets the
// deletion that has a vote of the acquire.
func TestRunATransactionDeletesNoVotesUnderAKeyThatItsClientDoesNotWatch(t *testing.T) {
	s := startLiveSet(t, 5)
	for i, m := range s.masters {
		m.must("SET", "watched", "me", "PX", "60000")
		if i < 2 {
			m.must("SET", "other", "a vote", "PX", "60000")
		}
	}
	w := s.watch("watched")
	r := RunRequest{Keys: bytesOf([]string{"other", "watched"}), Deletes: bytesOf([]string{"other"}), Watches: []*Watch{w}}
	wantReply(t, s.transaction(r, []string{"DEL", "other"}), "*1\r\n:0\r\n")
	s.awaitIdle()
	for i, m := range s.masters[:2] {
		stats, _ := resp.ParseBulk(m.must("INFO", "commandstats"))
		calls := func(command string) string {
			n, _, _ := strings.Cut(stream.InfoField(stats, "cmdstat_"+command), ",")
			return n
		}
		if calls("del") != calls("persist") { // each probe has one of both
			t.Errorf("master %d has executed a DEL", i+1)
		}
	}
}

// A client hears that keys have changed only if it watches them.
func TestRunATransactionTellsOnlyOfChangesOfWhatItsClientWatches(t *testing.T) {
	for _, row := range []struct {
		name   string
		change []string
		resp3  bool
		reply  string
	}{
		{"what it watches", []string{"SET", "watched", "you"}, false, "*-1\r\n"},
		{"what it watches, RESP3", []string{"SET", "watched", "you"}, true, "_\r\n"},
		{"what it deletes", []string{"PEXPIRE", "other", "50000"}, false, "*1\r\n:1\r\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := startLiveSet(t, 3)
			s.all([]string{"SET", "watched", "me", "PX", "60000"})
			s.all([]string{"SET", "other", "me", "PX", "60000"})
			w := s.watch("watched")
			s.examined.afterLook(func(Verdict) { s.all(row.change) })
			r := RunRequest{Keys: bytesOf([]string{"other", "watched"}), Deletes: bytesOf([]string{"other"}), Watches: []*Watch{w}, RESP3: row.resp3}
			wantReply(t, s.transaction(r, []string{"DEL", "other"}), row.reply)
		})
	}
}

// A transaction that deletes one key does not wait until another of its keys is quiet.
func TestRunATransactionDeletesBesideABusyKey(t *testing.T) {
	s := startLiveSet(t, 3)
	s.all([]string{"SET", "lock", "me", "PX", "60000"})
	s.all([]string{"SET", "busy", "0"})
	var busy func(Verdict)
	busy = func(Verdict) {
		s.all([]string{"INCRBY", "busy", "10"})
		s.examined.afterLook(busy)
	}
	s.examined.afterLook(busy)
	r := RunRequest{Keys: bytesOf([]string{"busy", "lock"}), Deletes: bytesOf([]string{"lock"})}
	wantReply(t, s.transaction(r, []string{"DEL", "lock"}, []string{"INCR", "busy"}), "*2\r\n:1\r\n:11\r\n")
}

// If the copies of a lock differ for good, they are mended, so that the client's next attempt finds a
// quorum.
func TestTimelineCopiesThatATransactionFindsDifferentAreMended(t *testing.T) {
	lock := bytesOf([]string{key})
	for name, try := range map[string]func(w *timeline) Outcome{
		"DEL": func(w *timeline) Outcome {
			return w.locker.Run(context.Background(), RunRequest{Keys: lock, Deletes: lock, Transaction: [][][]byte{bytesOf([]string{"DEL", key})}})
		},
		"WATCH": func(w *timeline) Outcome {
			watch, o := w.locker.Watch(context.Background(), 0, lock)
			if watch != nil {
				t.Error("copies that differ are watched")
			}
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

func TestTimelineATransactionThatDeletesGoesOutOnce(t *testing.T) {
	onTimeline(t, "ok ok ok ok ok", func(t *testing.T, w *timeline) {
		w.put("A A A A A", time.Minute)
		lock := bytesOf([]string{key})
		r := RunRequest{Keys: lock, Deletes: lock, Transaction: [][][]byte{bytesOf([]string{"DEL", key})}}
		wantReply(t, w.locker.Run(t.Context(), r), "*1\r\n:1\r\n")
	})
}
