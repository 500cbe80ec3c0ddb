package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// Masters that refuse what the proxy needs itself: whatever the words, that is no
// answer, and what they were to do stays owed.

// refusals are ways of a server to say that it cannot serve, and how each ends.
var refusals = map[string]struct{ begin, end []string }{
	"too few replicas":         {[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}},
	"no right inside a script": {[]string{"ACL", "SETUSER", "default", "-del"}, []string{"ACL", "SETUSER", "default", "+del"}},
	"no right to scripts":      {[]string{"ACL", "SETUSER", "default", "-eval"}, []string{"ACL", "SETUSER", "default", "+eval"}},
}

func (s *liveSet) all(command []string) {
	s.t.Helper()
	for _, m := range s.masters {
		m.must(command...)
	}
}

func TestARefusalIsNoAnswerToARelease(t *testing.T) {
	releases := map[string]func(s *liveSet) Outcome{
		"DEL": func(s *liveSet) Outcome { return s.Release(s.t.Context(), ReleaseRequest{Key: []byte(key)}) },
		"a script": func(s *liveSet) Outcome {
			return s.run([]string{key}, "EVAL", compareAndDelete, "1", key, tokenA)
		},
	}
	for refusal, how := range refusals {
		for name, release := range releases {
			t.Run(refusal+", "+name, func(t *testing.T) {
				s := startLiveSet(t, 3)
				acquire := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: time.Hour}
				if o := s.Acquire(t.Context(), acquire); o.Verdict != Won {
					t.Fatal(o)
				}
				s.awaitIdle()
				s.all(how.begin)
				if o := release(s); o.Verdict != NoQuorum {
					t.Errorf("%v %q while the lock is held everywhere", o.Verdict, o.Reply)
				}
				s.all(how.end)
				s.eventuallyGone(key)
			})
		}
	}
}

// A master that could not give a lock back is not asked for one.
func TestAMasterThatRefusesWhatLocksNeedIsNotAsked(t *testing.T) {
	s := startLiveSet(t, 3)
	s.all([]string{"ACL", "SETUSER", "default", "-persist"})
	for _, ttl := range []time.Duration{0, time.Hour} { // without TTL it is made permanent
		acquire := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: ttl}
		if o := s.Acquire(t.Context(), acquire); o.Verdict == Won {
			t.Errorf("won %v", ttl)
		}
		s.eventually("refusing", func(*liveMaster) bool {
			for _, m := range s.Locker.masters {
				ping := stream.Call{Replies: 1, Asker: stream.AskerFunc(func([][]byte, stream.Judgement, error) {})}
				if m.stream(0).Send(ping, stream.Sending{Frames: resp.AppendCommand(nil, "PING"), Creates: true}, time.Now()) {
					return false
				}
			}
			return true
		})
	}
	s.eventuallyGone(key)
	s.all([]string{"ACL", "SETUSER", "default", "+persist"})
	s.eventually("asked again", func(*liveMaster) bool {
		o := s.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: time.Hour})
		if o.Verdict == Won {
			s.Release(t.Context(), ReleaseRequest{Key: []byte(key)})
		}
		return o.Verdict == Won
	})
}

// A key that the masters' rights do not reach is refused, and others go on.
func TestAKeyOutsideTheRightsHarmsNoOther(t *testing.T) {
	s := startLiveSet(t, 3)
	s.all([]string{"ACL", "SETUSER", "default", "resetkeys", "~lock:*", "~redlock-proxy:*"})
	for range 5 {
		if o := s.Acquire(t.Context(), AcquireRequest{Key: []byte("elsewhere"), Value: []byte(tokenA), TTL: time.Hour}); o.Verdict != NoQuorum {
			t.Errorf("%v", o.Verdict)
		}
		if o := s.Acquire(t.Context(), AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: time.Hour}); o.Verdict != Won {
			t.Errorf("%v", o.Verdict)
		}
		if o := s.Release(t.Context(), ReleaseRequest{Key: []byte(key)}); o.Verdict != Won {
			t.Errorf("%v", o.Verdict)
		}
	}
}

// A client's own command on the masters is no answer either.
func TestARefusalIsNoAnswerToACommand(t *testing.T) {
	for _, reply := range []string{
		"-NOREPLICAS Not enough good replicas to write.\r\n",
		"-ERR The user executing the script can't run this command or subcommand script: f, on @user_script:1.\r\n",
		"-ERR Error running script (call to f): @user_script:1: @user_script: 1: -NOREPLICAS Not enough good replicas to write.\r\n",
	} {
		if !resp.CannotServe([]byte(reply)) || !resp.CannotServeInside([]byte(reply)) {
			t.Errorf("%q is an answer", reply)
		}
	}
	for reply, want := range map[string]error{
		"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n":                                                       nil,
		"-WRONGTYPE Operation against a key holding the wrong kind of value script: f, on @user_script:3.\r\n":                         nil,
		"-ERR Error running script (call to f): @user_script:3: WRONGTYPE Operation against a key holding the wrong kind of value\r\n": nil,
		"-ERR what nobody has heard of\r\n":                  errNotServed,
		"-NOREPLICAS Not enough good replicas to write.\r\n": errNotServed,
		":1\r\n": nil,
	} {
		if got := ownAs([]byte(reply), true); got != want {
			t.Errorf("%q: %v", reply, got)
		}
	}
}
