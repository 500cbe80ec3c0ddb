package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/quorum"
)

// cycle takes a lock and gives it back by compare-and-delete, as most clients do.
func (s *liveSet) cycle(tb testing.TB) {
	const token = "a token of sixteen bytes or more"
	if o := s.Acquire(tb.Context(), AcquireRequest{Key: []byte(key), Value: []byte(token), TTL: time.Minute}); o.Verdict != Won {
		tb.Fatalf("%v", o.Verdict)
	}
	if o := s.run([]string{key}, "EVAL", releaseByValue, "1", key, token); string(o.Reply) != ":1\r\n" {
		tb.Fatalf("%v %q", o.Verdict, o.Reply)
	}
}

// mostAllocations is the largest number of allocations of a cycle over five masters. It
// includes late answers, this test's requests, and what pools lose under the race
// detector. BenchmarkCycle shows the present number.
const mostAllocations = 44

func TestAllocationsOfACycle(t *testing.T) {
	s := startLiveSet(t, 5)
	if n := testing.AllocsPerRun(500, func() { s.cycle(t) }); n > mostAllocations {
		t.Errorf("%v allocations, want at most %v", n, mostAllocations)
	}
}

func TestTheTallyAllocatesNothing(t *testing.T) {
	answers := make([]quorum.Answer[bool], 7)
	for i := range answers {
		answers[i] = quorum.Answer[bool]{State: quorum.Answered, Value: i%2 == 0}
	}
	if n := testing.AllocsPerRun(100, func() {
		votes := quorum.Count(answers, ballot.Yes)
		_, _, _ = votes.Acquire(), votes.Agree(), votes.Release()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCycle(b *testing.B) {
	s := startLiveSet(b, 5)
	b.ReportAllocs()
	for b.Loop() {
		s.cycle(b)
	}
}
