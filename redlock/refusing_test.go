package redlock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/redlock/resp"
	"redlock-proxy/redlock/stream"
)

// Masters that refuse commands of the proxy's own. Whatever the error says, it is no
// answer, and the debt stays.

// refusals are a server's ways to say that it cannot serve, and how each ends.
var refusals = map[string]struct {
	begin, end []string
}{
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

// A master that takes no locks is none that votes, to everybody who asks for its state, and also if
// nobody locks. It has forgotten nothing, so it votes again without a quarantine.
func TestAMasterThatRefusesLocksDoesNotVote(t *testing.T) {
	for _, how := range []struct {
		begin, end, reason string
		releases           bool
	}{
		{"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "(OOM); raise its maxmemory", true},
		{"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "(NOREPLICAS); set its min-replicas-to-write to 0", false},
		{"ACL SETUSER default -@write", "ACL SETUSER default +@write", "NOPERM this user has no permissions to run the 'set' command", false},
		{"ACL SETUSER default -eval", "ACL SETUSER default +eval", "NOPERM this user has no permissions to run the 'eval' command", false},
		{"ACL SETUSER default -dump", "ACL SETUSER default +dump", "grant it (the server says: ", true},
		{"ACL SETUSER default -restore", "ACL SETUSER default +restore", "grant it (the server says: ", true},
		{"ACL SETUSER default -watch", "ACL SETUSER default +watch", "NOPERM this user has no permissions to run the 'watch' command", true},
	} {
		t.Run(how.begin, func(t *testing.T) {
			s := startLiveSet(t, 3)
			acquire := AcquireRequest{Key: []byte(key), Value: []byte(tokenA), TTL: time.Hour}
			if o := s.Acquire(t.Context(), acquire); o.Verdict != Won {
				t.Fatal(o)
			}
			s.awaitIdle()
			s.all(strings.Fields(how.begin))
			s.eventually("rejected", func(*liveMaster) bool {
				return !slices.ContainsFunc(s.Status().Masters, func(m MasterStatus) bool { return m.State != Rejected || !strings.Contains(m.Reason, how.reason) })
			})
			if o := s.Get(t.Context(), 0, []byte(key)); o.Verdict != Won || string(o.Value) != tokenA {
				t.Errorf("it answers reads, and they count: %v %q", o.Verdict, o.Value)
			}
			if how.releases {
				if o := s.Release(t.Context(), ReleaseRequest{Key: []byte(key)}); o.Verdict != Won {
					t.Errorf("it releases, and that counts: %v", o.Verdict)
				}
			}
			s.all(strings.Fields(how.end))
			s.eventually("votes again", func(*liveMaster) bool { return s.Status().Ready() })
		})
	}
}

// What the stream asks an idle master changes nothing there.
func TestAnIdleMasterIsNotWritten(t *testing.T) {
	s := startLiveSet(t, 3)
	count := func(m *liveMaster, section, field string) int {
		info, _ := resp.ParseBulk(m.must("INFO", section))
		n, _ := strconv.Atoi(stream.InfoField(info, field))
		return n
	}
	probes := func(m *liveMaster) int {
		info, _ := resp.ParseBulk(m.must("INFO", "commandstats"))
		var n int
		fmt.Sscanf(stream.InfoField(info, "cmdstat_unwatch"), "calls=%d", &n)
		return n
	}
	first := s.masters[0]
	s.eventually("probed", func(m *liveMaster) bool { return probes(m) > 0 })
	probed, written, refused := probes(first), count(first, "persistence", "rdb_changes_since_last_save"), count(first, "stats", "total_error_replies")
	s.eventually("probed again", func(*liveMaster) bool { return probes(first) > probed+1 })
	if now := count(first, "persistence", "rdb_changes_since_last_save"); now != written {
		t.Errorf("%d writes", now-written)
	}
	if now := count(first, "stats", "total_error_replies"); now != refused {
		t.Errorf("%d errors", now-refused)
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
