package redlock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"redlock-proxy/redlock/resp"
)

// Runs that delete. Only the script knows what a deletion means: it releases a lock, or
// takes one by popping a queue or a token. So such a run needs equal votes of a quorum,
// like every other.

// fairLock works like Redisson's fair lock. KEYS are the lock, which is a hash, the queue
// of waiting clients, and the times until which they wait.
const fairLock = `
if redis.call('exists', KEYS[1]) == 0
  and (redis.call('exists', KEYS[2]) == 0 or redis.call('lindex', KEYS[2], 0) == ARGV[2]) then
  redis.call('lpop', KEYS[2])
  redis.call('zrem', KEYS[3], ARGV[2])
  redis.call('hset', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
if redis.call('zscore', KEYS[3], ARGV[2]) ~= false then return 1 end
redis.call('zadd', KEYS[3], 1800000000000, ARGV[2])
redis.call('rpush', KEYS[2], ARGV[2])
return redis.call('pttl', KEYS[1])`

var fairKeys = []string{"lock", "queue", "timeouts"}

func (s *liveSet) fairLock(who string) Outcome {
	return s.run(fairKeys, "EVAL", fairLock, "3", "lock", "queue", "timeouts", "60000", who)
}

// queued makes A hold the lock everywhere, and B wait for it.
func queued(t *testing.T) *liveSet {
	s := startLiveSet(t, 3)
	wantReply(t, s.fairLock("A"), "$-1\r\n")
	if o := s.fairLock("B"); o.Verdict != Won || resp.IsNil(o.Reply) {
		t.Fatalf("B is told %v %q while A holds the lock", o.Verdict, o.Reply)
	}
	s.eventually("with B in the queue", func(m *liveMaster) bool {
		return s.Locker.masters.Idle() && string(m.must("LLEN", "queue")) == ":1\r\n"
	})
	return s
}

// With one master away, another master that lost A's lock makes no quorum.
func TestRunOneMasterDoesNotGrantByPoppingItsQueue(t *testing.T) {
	s := queued(t)
	s.masters[2].kill()
	s.masters[1].must("DEL", "lock")
	was := s.masters[1].conn.look("queue")
	if o := s.fairLock("B"); o.Verdict != NoQuorum {
		t.Errorf("B is told %v %q while A holds the lock", o.Verdict, o.Reply)
	}
	s.masters = s.masters[:2]
	s.eventually("as it was", func(m *liveMaster) bool {
		return s.Locker.masters.Idle() && sameImage(m.conn.look("queue"), was) && string(m.must("HEXISTS", "lock", "B")) == ":0\r\n"
	})
}

// If the lock expires a little later on one master, that master's queue is made equal to
// the others'. Otherwise the client that was served would stay first in it.
func TestRunAQueueThatTheOthersHavePoppedGoes(t *testing.T) {
	s := queued(t)
	s.masters[0].must("DEL", "lock")
	s.masters[1].must("DEL", "lock")
	wantReply(t, s.fairLock("B"), "$-1\r\n")
	s.eventuallyGone("queue")
	s.eventuallyGone("timeouts")
	s.awaitIdle()
	if string(s.masters[2].must("HEXISTS", "lock", "A")) != ":1\r\n" {
		t.Error("the lock that was still there has gone, too")
	}
}

// If a master kept a copy with another content, that is not the lock that the others
// deleted.
func TestRunAQueueOfOthersStays(t *testing.T) {
	s := queued(t)
	s.masters[0].must("DEL", "lock")
	s.masters[1].must("DEL", "lock")
	s.masters[2].must("RPUSH", "queue", "C")
	wantReply(t, s.fairLock("B"), "$-1\r\n")
	s.awaitIdle()
	if got := string(s.masters[2].must("LLEN", "queue")); got != ":2\r\n" {
		t.Errorf("the queue has %q", got)
	}
}

// One master's vote is too few, whatever command deletes. The master gets back what it
// deleted.
func TestRunOneMasterDoesNotGrantByDeleting(t *testing.T) {
	const pop = `if redis.call('exists', KEYS[2]) == 1 then return nil end return redis.call('rpop', KEYS[1])`
	for _, row := range []struct {
		name string
		run  func(s *liveSet) Outcome
	}{
		{"RENAMENX", func(s *liveSet) Outcome { return s.run([]string{"a", "b"}, "RENAMENX", "a", "b") }},
		{"a script that pops the last token", func(s *liveSet) Outcome {
			return s.run([]string{"a", "b"}, "EVAL", pop, "2", "a", "b")
		}},
		{"a transaction", func(s *liveSet) Outcome {
			return s.Run(s.t.Context(), RunRequest{
				Keys:        bytesOf([]string{"a", "b"}),
				Transaction: [][][]byte{bytesOf([]string{"DEL", "a"}), bytesOf([]string{"SET", "b", "me", "NX", "PX", "60000"})},
			})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := startLiveSet(t, 3)
			s.all([]string{"RPUSH", "a", "1"})
			s.masters[0].must("SET", "b", "another holder's", "PX", "60000")
			s.masters[2].kill()
			s.masters = s.masters[:2]
			was := s.masters[1].conn.look("a")
			if o := row.run(s); o.Verdict != NoQuorum {
				t.Errorf("%v %q", o.Verdict, o.Reply)
			}
			s.eventually("as it was", func(m *liveMaster) bool {
				return s.Locker.masters.Idle() && sameImage(m.conn.look("a"), was) && (m == s.masters[0] || m.dump("b") == nil)
			})
		})
	}
}

// A release by script is won even if one master is away and another has a counter that
// drifted.
func TestRunAReleaseIsWonWithAMasterAwayOrDrifted(t *testing.T) {
	const leave = `
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then return 0 end
redis.call('del', KEYS[1])
return 1`
	for name, harm := range map[string]func(m *liveMaster){
		"away":    (*liveMaster).kill,
		"drifted": func(m *liveMaster) { m.must("HSET", "lock", "me", "2") },
		"empty":   func(m *liveMaster) { m.must("DEL", "lock") },
	} {
		t.Run(name, func(t *testing.T) {
			s := startLiveSet(t, 3)
			for _, m := range s.masters {
				m.must("HSET", "lock", "me", "1")
				m.must("PEXPIRE", "lock", "60000")
			}
			harm(s.masters[2])
			wantReply(t, s.run([]string{"lock"}, "EVAL", leave, "1", "lock", "me"), ":1\r\n")
			if name == "away" {
				s.masters = s.masters[:2]
			}
			s.eventuallyGone("lock")
		})
	}
}

// A script that deletes whatever it finds does not go again to masters that had forgotten it, if
// others have deleted something. The client asks again, and is answered.
func TestRunAScriptThatDeletesAnywayGoesOut(t *testing.T) {
	const leave = "return redis.call('del', KEYS[1])"
	s := startLiveSet(t, 5)
	sum := sha1.Sum([]byte(leave))
	again := func() Outcome {
		return s.Run(t.Context(), RunRequest{
			Keys:    bytesOf([]string{"lock"}),
			Args:    bytesOf([]string{"EVALSHA", hex.EncodeToString(sum[:]), "1", "lock"}),
			Scripts: bytesOf([]string{leave}),
		})
	}
	// A run does not go to a master that came late to its look. So it is repeated until each was asked.
	s.eventually("knowing the script", func(m *liveMaster) bool {
		known := string(m.must("SCRIPT", "EXISTS", hex.EncodeToString(sum[:]))) == "*1\r\n:1\r\n"
		if !known {
			wantReply(t, again(), ":0\r\n")
			s.awaitIdle()
		}
		return known
	})
	for i, m := range s.masters {
		if i < 3 {
			m.must("SET", "lock", "me", "PX", "60000")
		}
		if i >= 2 {
			m.must("SCRIPT", "FLUSH")
		}
	}
	was := s.masters[0].conn.look("lock")
	if o := again(); o.Verdict != NoQuorum {
		t.Errorf("%v %q", o.Verdict, o.Reply)
	}
	s.awaitIdle()
	if !sameImage(s.masters[0].conn.look("lock"), was) {
		t.Error("the lock was not put back")
	}
	wantReply(t, again(), ":1\r\n")
	s.eventuallyGone("lock")
}

// A transaction that has deleted something is not executed again, because another client may have
// taken the lock since.
func TestRunATransactionThatDeletedDoesNotLookAgain(t *testing.T) {
	const differs = `redis.call('incr', KEYS[2]); return redis.call('info', 'server')`
	s := startLiveSet(t, 3)
	s.all([]string{"SET", "lock", "me", "PX", "60000"})
	o := s.Run(t.Context(), RunRequest{
		Keys:        bytesOf([]string{"lock"}),
		Transaction: [][][]byte{bytesOf([]string{"DEL", "lock"}), bytesOf([]string{"EVAL", differs, "2", "lock", "tries"})},
		Deletes:     bytesOf([]string{"lock"}),
	})
	if o.Verdict != NoQuorum {
		t.Errorf("%v %q", o.Verdict, o.Reply)
	}
	s.awaitIdle()
	executed := 0
	for i, m := range s.masters {
		switch tries := string(m.must("GET", "tries")); tries {
		case "$1\r\n1\r\n":
			executed++
		case "$-1\r\n": // its look came late
		default:
			t.Errorf("master %d has executed it %q times", i+1, tries)
		}
	}
	if executed < 2 {
		t.Errorf("%d masters have executed it", executed)
	}
}

// A master whose copy differs does not get the deletion of a hash. No other request may ever find that
// copy, so it is mended at once.
func TestRunACollectionThatWasDeletedElsewhereIsMended(t *testing.T) {
	s := startQuickMendingSet(t)
	for i, m := range s.masters {
		m.must("HSET", "lock", "me", []string{"1", "1", "2"}[i])
	}
	wantReply(t, s.run([]string{"lock"}, "EVAL", deleteAnyway, "1", "lock"), ":1\r\n")
	s.eventuallyGone("lock")
}

// A master whose copy changes between WATCH and EXEC does not get the deletion, which a quorum makes.
func TestRunACopyThatChangedBeforeATransactionDeletedTheOthersIsMended(t *testing.T) {
	s := startQuickMendingSet(t)
	s.all([]string{"SET", "lock", "a value", "PX", "600000"})
	watch := s.watch("lock")
	s.awaitIdle() // all masters have shown their copies
	s.masters[2].must("SET", "lock", "another value")
	wantReply(t, s.deleteIfUnchanged("lock", watch), "*1\r\n:1\r\n")
	s.eventuallyGone("lock")
}

// startQuickMendingSet is startLiveSet of three masters with a short timeout, so that copies are quiet
// soon.
func startQuickMendingSet(t *testing.T) *liveSet {
	s := startLiveSet(t, 3)
	cfg := *s.settings()
	cfg.MasterTimeout = second
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	s.Locker = l
	s.awaitVotes()
	return s
}
