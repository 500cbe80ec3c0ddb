package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// Masters that refuse commands of the proxy's own. Whatever the error says, it is no
// answer, and the debt stays.

// refusals are a server's ways to say that it cannot serve, and how each ends.
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

// A master that could not release a lock is not asked for one.
func TestAMasterThatRefusesWhatLocksNeedIsNotAsked(t *testing.T) {
	s := startLiveSet(t, 3)
	s.all([]string{"ACL", "SETUSER", "default", "-persist"})
	for _, ttl := range []time.Duration{0, time.Hour} { // without TTL it is made permanent
		acquire := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: ttl}
		if o := s.Acquire(t.Context(), acquire); o.Verdict == Won {
			t.Errorf("won %v", ttl)
		}
		s.eventually("refusing", func(*liveMaster) bool {
			for i := range s.Locker.masters.List().Size() {
				ping := stream.Call{Replies: 1, Asker: stream.AskerFunc(func([][]byte, stream.Judgement, error) {})}
				if s.Locker.masters.At(i).Stream(0).Send(ping, stream.Sending{Frames: resp.AppendCommand(nil, "PING"), Creates: true}, time.Now()) {
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
