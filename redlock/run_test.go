package redlock

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/redlock/loop"
	"redlock-proxy/redlock/resp"
)

const releaseByValue = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

// liveSet is a Locker over real servers.
type liveSet struct {
	*Locker
	t        testing.TB
	masters  []*liveMaster
	loop     *loop.Loop
	examined examined
}

// examined tells whether a run was examined since the last call.
type examined struct {
	nobody
	one  atomic.Bool
	look atomic.Pointer[func(v Verdict)] // called once after the next look; may be nil
}

func (e *examined) Decided(kind Kind, v Verdict, _ time.Duration) {
	if kind == KindRun {
		e.one.Store(true)
	}
	if kind == KindRead {
		if f := e.look.Swap(nil); f != nil {
			(*f)(v)
		}
	}
}

// afterLook calls f after the next look and before anything that follows from it.
func (e *examined) afterLook(f func(v Verdict)) { e.look.Store(&f) }

// startLiveSet starts servers and a Locker whose connections an event loop reads.
func startLiveSet(t testing.TB, n int) *liveSet {
	set := &liveSet{t: t, loop: startLoop(t)}
	cfg := Config{Loop: set.loop, MasterTimeout: livePatience, ClockDrift: 0.01, New: true, Observer: &set.examined}
	for i := range n {
		m := startLiveMaster(t)
		set.masters = append(set.masters, m)
		cfg.Masters = append(cfg.Masters, Master{
			Name: fmt.Sprint("master", i+1),
			Dial: func(ctx context.Context) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", m.socket)
			},
		})
	}
	locker, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	set.Locker = locker
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		locker.Close(ctx)
	})
	set.awaitVotes()
	return set
}

// run runs one command of a client on the lock's keys.
func (s *liveSet) run(keys []string, args ...string) Outcome {
	return s.Run(s.t.Context(), RunRequest{Keys: bytesOf(keys), Args: bytesOf(args)})
}

func bytesOf(texts []string) [][]byte {
	var list [][]byte
	for _, text := range texts {
		list = append(list, []byte(text))
	}
	return list
}

func wantReply(t *testing.T, o Outcome, reply string) {
	t.Helper()
	if o.Verdict != Won || string(o.Reply) != reply {
		t.Errorf("%v %q, want won %q", o.Verdict, o.Reply, reply)
	}
}

// eventually waits for an effect of what a master gets after the verdict.
func (s *liveSet) eventually(what string, holds func(m *liveMaster) bool) {
	s.t.Helper()
	for i, m := range s.masters {
		for end := time.Now().Add(livePatience); !holds(m); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				s.t.Fatalf("master %d: not %s", i+1, what)
			}
		}
	}
}

// awaitVotes returns when all masters vote. A ballot would wait only for a quorum.
func (s *liveSet) awaitVotes() {
	s.t.Helper()
	s.Locker.masters.Prepare(0, nil)
	s.eventually("voting", func(*liveMaster) bool {
		votes, _ := s.Prospects(0, time.Now())
		return votes == len(s.masters)
	})
}

// awaitIdle returns when the masters have answered everything.
func (s *liveSet) awaitIdle() {
	s.t.Helper()
	s.eventually("idle", func(*liveMaster) bool { return s.Locker.masters.Idle() })
}

func (s *liveSet) wantEverywhere(key, value string) {
	s.t.Helper()
	for i, m := range s.masters {
		if got, want := string(m.must("GET", key)), string(resp.AppendBulk(nil, value)); got != want {
			s.t.Errorf("master %d has %q, not %q", i+1, got, want)
		}
	}
}

func (s *liveSet) eventuallyGone(key string) {
	s.t.Helper()
	s.eventually(key+" gone", func(m *liveMaster) bool { return m.dump(key) == nil })
}

// A client of another proxy may have loaded a script on some masters only. NOSCRIPT from
// the others is no refusal, and the release reaches those masters, too.
func TestRunAReleaseReachesMastersThatDoNotKnowItsScript(t *testing.T) {
	s := startLiveSet(t, 3)
	s.all([]string{"SET", "lock", "a token of sixteen bytes or more", "PX", "60000"})
	s.masters[0].must("SCRIPT", "LOAD", releaseByValue)
	s.masters[1].must("SCRIPT", "LOAD", releaseByValue)
	sum := sha1.Sum([]byte(releaseByValue))
	o := s.run([]string{"lock"}, "EVALSHA", hex.EncodeToString(sum[:]), "1", "lock", "a token of sixteen bytes or more")
	wantReply(t, o, ":1\r\n")
	s.eventuallyGone("lock")
}

// What a minority did against the verdict is put back exactly.
func TestRunADissentingGrantIsTakenBack(t *testing.T) {
	s := startLiveSet(t, 3)
	s.masters[0].must("HSET", "lock", "other", "1")
	s.masters[1].must("HSET", "lock", "other", "1")
	acquire := `if redis.call('exists', KEYS[1]) == 0 then redis.call('hset', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], 60000) return nil end return redis.call('pttl', KEYS[1])`
	o := s.run([]string{"lock"}, "EVAL", acquire, "1", "lock", "me")
	wantReply(t, o, ":-1\r\n")
	s.eventually("undone", func(m *liveMaster) bool {
		// By then the late vote, and the undo that follows it, are answered.
		return s.Locker.masters.Idle() && string(m.must("HEXISTS", "lock", "me")) == ":0\r\n"
	})
	if got := string(s.masters[2].must("EXISTS", "lock")); got != ":0\r\n" {
		t.Errorf("the master that granted alone still has the lock: %q", got)
	}
}

// A run that rewrites the same bytes is no refusal, and stays.
func TestRunAReentrantGrantWithTheSameBytesStays(t *testing.T) {
	s := startLiveSet(t, 3)
	acquire := `if redis.call('get', KEYS[1]) == ARGV[1] or redis.call('exists', KEYS[1]) == 0 then return redis.call('set', KEYS[1], ARGV[1], 'PX', 60000) end return nil`
	for range 3 {
		wantReply(t, s.run([]string{"lock"}, "EVAL", acquire, "1", "lock", "me"), "+OK\r\n")
	}
	s.eventually("held", func(m *liveMaster) bool { return string(m.must("GET", "lock")) == "$2\r\nme\r\n" })
}

// Counters that drifted apart are no quorum, although each changes by the same amount.
func TestRunComparesStatesNotChanges(t *testing.T) {
	s := startLiveSet(t, 3)
	for i, m := range s.masters {
		m.must("SET", "count", fmt.Sprint(10*i))
	}
	// The request does not wait until the copies are equal.
	impatient, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if o := s.Run(impatient, RunRequest{Keys: bytesOf([]string{"count"}), Args: bytesOf([]string{"INCR", "count"})}); o.Verdict != NoQuorum {
		t.Fatalf("%v %q", o.Verdict, o.Reply)
	}
	for i, m := range s.masters {
		want := fmt.Sprint(10 * i)
		for end := time.Now().Add(livePatience); string(m.must("GET", "count")) != fmt.Sprintf("$%d\r\n%s\r\n", len(want), want); {
			if time.Now().After(end) {
				t.Fatalf("master %d: not put back", i+1)
			}
		}
	}
}

// A counter that drifted on one master is deleted with its lock, and nothing else is.
func TestRunAReleaseTakesADriftedCounterWithIt(t *testing.T) {
	const leave = `local n = redis.call('hincrby', KEYS[1], ARGV[1], -1) if n == 0 then redis.call('del', KEYS[1]) end return n`
	s := startLiveSet(t, 5)
	for i, m := range s.masters {
		count := "1"
		if i == 4 {
			count = "3"
		}
		m.must("HSET", "lock", "me", count)
		m.must("PEXPIRE", "lock", "60000")
	}
	wantReply(t, s.run([]string{"lock"}, "EVAL", leave, "1", "lock", "me"), ":0\r\n")
	s.eventuallyGone("lock")
}

// If a release left a key as it was on one master, the key belongs to another client there.
func TestRunAReleaseLeavesWhatItDidNotChange(t *testing.T) {
	s := startLiveSet(t, 3)
	const leave = `if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end redis.call('del', KEYS[1]) return 1`
	for i, m := range s.masters {
		m.must("HSET", "lock", []string{"me", "me", "you"}[i], "1")
	}
	wantReply(t, s.run([]string{"lock"}, "EVAL", leave, "1", "lock", "me"), ":1\r\n")
	s.awaitIdle()
	if got := string(s.masters[2].must("HEXISTS", "lock", "you")); got != ":1\r\n" {
		t.Errorf("another holder's field: %q", got)
	}
}

// What gives a key a moment is answered as by one Redis, and is no lock.
func TestRunAKeyOfAMomentIsNoLock(t *testing.T) {
	s := startLiveSet(t, 5)
	for _, moment := range []string{"1", "2"} {
		o := s.run([]string{"lock"}, "EVAL", "return redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2])", "1", "lock", "me", moment)
		wantReply(t, o, "+OK\r\n")
		if o.Lives != 0 {
			t.Errorf("a lock of %v", o.Lives)
		}
		s.eventuallyGone("lock")
	}
	for name, command := range map[string][]string{
		"SET": {"SET", "lock", "me", "PX", "2"}, "PEXPIRE": {"PEXPIRE", "lock", "2"}, "GETEX": {"GETEX", "lock", "PX", "2"},
	} {
		for range 20 {
			for _, m := range s.masters {
				m.must("SET", "lock", "me", "PX", "60000")
			}
			o := s.transaction(RunRequest{Keys: bytesOf([]string{"lock"}), Effects: true}, command)
			if o.Verdict != Won || len(o.Effects) != 1 || o.Effects[0].Change != KeyDeleted {
				t.Errorf("%s: %v %q %v", name, o.Verdict, o.Reply, o.Effects)
			}
			s.eventuallyGone("lock")
		}
	}
}

// watch looks at a key as WATCH does.
func (s *liveSet) watch(key string) *Watch {
	w, o := s.Watch(s.t.Context(), 0, bytesOf([]string{key}))
	if o.Verdict == NoQuorum {
		s.t.Error(o.NoQuorumError())
	}
	return w
}

// deleteIfUnchanged is a transaction on a watched key.
func (s *liveSet) deleteIfUnchanged(key string, w *Watch) Outcome {
	return s.transaction(RunRequest{Keys: bytesOf([]string{key}), Watches: []*Watch{w}}, []string{"DEL", key})
}

func TestWatchAbortsWhenAKeyChanged(t *testing.T) {
	for _, row := range []struct {
		name   string
		meddle []string
		reply  string
	}{
		{"untouched", nil, "*1\r\n:1\r\n"},
		{"another value", []string{"SET", "lock", "you", "PX", "60000"}, "*-1\r\n"},
		{"gone", []string{"DEL", "lock"}, "*-1\r\n"},
		{"another expiry", []string{"PEXPIRE", "lock", "5000"}, "*-1\r\n"},
		{"no expiry", []string{"PERSIST", "lock"}, "*-1\r\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := startLiveSet(t, 3)
			s.all([]string{"SET", "lock", "me", "PX", "60000"})
			w := s.watch("lock")
			if row.meddle != nil {
				s.all(row.meddle)
			}
			wantReply(t, s.deleteIfUnchanged("lock", w), row.reply)
			if row.meddle == nil {
				s.eventuallyGone("lock")
			}
		})
	}
}

// If a guard cannot say whether the keys are as they were, its transaction does not go
// out to any master, whatever took the guard's rights away.
func TestWatchDoesNotFailOpen(t *testing.T) {
	for name, harm := range map[string][]string{
		"no right to EVAL":        {"ACL", "SETUSER", "default", "-eval"},
		"no right to WATCH":       {"ACL", "SETUSER", "default", "-watch"},
		"no right to other keys":  {"ACL", "SETUSER", "default", "resetkeys", "~lock"},
		"no right to TIME inside": {"ACL", "SETUSER", "default", "-time"},
		"no memory":               {"CONFIG", "SET", "maxmemory", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startLiveSet(t, 3)
			s.all([]string{"SET", "lock", "me", "PX", "60000"})
			w := s.watch("lock")
			s.all([]string{"SET", "lock", "you", "PX", "60000"})
			s.all(harm)
			o := s.deleteIfUnchanged("lock", w)
			if o.Verdict == Won && !resp.IsNil(o.Reply) {
				t.Errorf("%v %q", o.Verdict, o.Reply)
			}
			s.awaitIdle()
			s.wantEverywhere("lock", "you")
		})
	}
}

// Other clients' transactions on the same connections do not end a watch, and are not
// blocked for ever. Guards are not mixed up.
func TestWatchesOfManyClients(t *testing.T) {
	s := startLiveSet(t, 3)
	var clients sync.WaitGroup
	for n := range 20 {
		clients.Go(func() {
			key := fmt.Sprint("lock", n)
			for round := range 20 {
				wantReply(t, s.run([]string{key}, "EVAL", "return redis.call('set', KEYS[1], ARGV[1], 'px', 60000)", "1", key, "me"), "+OK\r\n")
				w := s.watch(key)
				if w == nil {
					return
				}
				want := "*1\r\n:1\r\n"
				if round%2 == 1 {
					wantReply(t, s.run([]string{key}, "SET", key, "you", "PX", "60000"), "+OK\r\n")
					want = "*-1\r\n"
				}
				wantReply(t, s.deleteIfUnchanged(key, w), want)
			}
		})
	}
	clients.Wait()
}

// A transaction must not run on a master whose image is unchanged but differs from the
// quorum's. There it would take away another client's vote.
func TestWatchAbortsWhereAMasterShowedSomethingElse(t *testing.T) {
	s := startLiveSet(t, 5)
	for i, m := range s.masters {
		m.must("SET", "lock", []string{"me", "me", "me", "you", "you"}[i], "PX", "60000")
	}
	wantReply(t, s.deleteIfUnchanged("lock", s.watch("lock")), "*1\r\n:1\r\n")
	s.awaitIdle()
	for i, m := range s.masters[3:] {
		if got := string(m.must("GET", "lock")); got != "$3\r\nyou\r\n" {
			t.Errorf("master %d has %q", i+4, got)
		}
	}
}

// A script that no master can compile gets the same reply as an unknown script.
func TestRunAScriptThatDoesNotCompileIsNoScript(t *testing.T) {
	s := startLiveSet(t, 5)
	for n := range 50 {
		text := []byte(fmt.Sprintf("\xef\xbb\xbfreturn redis.call('del', KEYS[1]) -- %d", n))
		sum := sha1.Sum(text)
		o := s.Run(t.Context(), RunRequest{
			Keys:    bytesOf([]string{"lock"}),
			Args:    bytesOf([]string{"EVALSHA", hex.EncodeToString(sum[:]), "1", "lock"}),
			Scripts: [][]byte{text},
		})
		wantReply(t, o, "-NOSCRIPT No matching script. Please use EVAL.\r\n")
	}
}

// Redisson's unlock leaves a latch of one millisecond beside the lock. Masters on which it
// has just expired agree with the others.
func TestRunALatchThatIsAsGoodAsGoneDoesNotDivideTheVotes(t *testing.T) {
	s := startLiveSet(t, 5)
	unlock := `redis.call('set', KEYS[2], 0, 'px', 1) return redis.call('set', KEYS[1], ARGV[1], 'px', 60000)`
	for range 50 {
		o := s.run([]string{"lock", "latch"}, "EVAL", unlock, "2", "lock", "latch", "me")
		wantReply(t, o, "+OK\r\n")
	}
}

// Votes are equal if the keys' states are, whatever a random read returns.
func TestRunARandomReadIsAnsweredByAnyMaster(t *testing.T) {
	s := startLiveSet(t, 5)
	wantReply(t, s.run([]string{"set"}, "SADD", "set", "a", "b", "c", "d", "e", "f"), ":6\r\n")
	for range 20 {
		o := s.Run(t.Context(), RunRequest{Keys: bytesOf([]string{"set"}), Args: bytesOf([]string{"SRANDMEMBER", "set"}), ReadOnly: true})
		if o.Verdict != Won || len(o.Reply) != len("$1\r\na\r\n") {
			t.Fatalf("%v %q", o.Verdict, o.Reply)
		}
	}
}

// A master whose copy is too large to be read with the run learns what the others did.
func TestRunACopyThatIsTooLargeIsMended(t *testing.T) {
	s := startQuickMendingSet(t)
	s.masters[0].must("APPEND", "k", strings.Repeat("x", 40<<10))
	wantReply(t, s.run([]string{"k"}, "APPEND", "k", "y"), ":1\r\n")
	s.eventually("mended", func(m *liveMaster) bool { return string(m.must("GET", "k")) == "$1\r\ny\r\n" })
}

// Equal copies may differ in size, because servers encode them in their own ways. A quorum decides
// nevertheless.
func TestRunEqualCopiesOfDifferentSizes(t *testing.T) {
	s := startLiveSet(t, 3)
	s.masters[1].must("CONFIG", "SET", "zset-max-ziplist-entries", "1000")
	add := []string{"ZADD", "k"}
	for i := range 620 {
		add = append(add, "1", fmt.Sprintf("member%04d", i))
	}
	for _, m := range s.masters {
		m.must(add...)
	}
	if large, small := len(s.masters[0].dump("k")), len(s.masters[1].dump("k")); large <= 10_922 || small > 10_922 {
		t.Fatalf("the copies have %d and %d bytes", large, small)
	}
	s.masters[2].kill()
	wantReply(t, s.run([]string{"k"}, "ZADD", "k", "1", "another"), ":1\r\n")
}
