//go:build !race

package redlock

import (
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/quorum"
)

// A holder takes a lock and gives it back by compare-and-delete, as most clients do. Its
// requests are those that a proxy makes of such commands.
type holder struct {
	locker  *Locker
	acquire AcquireRequest
	release RunRequest
}

func (s *liveSet) holder() *holder {
	const token = "a token of sixteen bytes or more"
	text := []byte(releaseByValue)
	return &holder{s.Locker,
		AcquireRequest{Key: []byte(key), Value: []byte(token), TTL: time.Minute},
		RunRequest{Keys: bytesOf([]string{key}), Args: bytesOf([]string{"EVALSHA", sha1Of(text), "1", key, token}), Scripts: [][]byte{text}, Effects: true},
	}
}

func (h *holder) cycle(tb testing.TB) {
	if o := h.locker.Acquire(tb.Context(), h.acquire); o.Verdict != Won {
		tb.Fatalf("%v", o.Verdict)
	}
	if o := h.locker.Run(tb.Context(), h.release); string(o.Reply) != ":1\r\n" {
		tb.Fatalf("%v %q", o.Verdict, o.Reply)
	}
}

// mostAllocations is the largest number of allocations of a cycle over five masters. It
// leaves one for late answers. Under the race detector pools lose what they hold, so this file is
// not built with it. BenchmarkCycle shows the present number.
const mostAllocations = 9

// On a busy machine more answers are late, so the least of some tries counts.
func TestAllocationsOfACycle(t *testing.T) {
	h := startLiveSet(t, 5).holder()
	least := testing.AllocsPerRun(100, func() { h.cycle(t) })
	for range 9 {
		if least <= mostAllocations {
			return
		}
		least = min(least, testing.AllocsPerRun(100, func() { h.cycle(t) }))
	}
	if least > mostAllocations {
		t.Errorf("%v allocations, want at most %v", least, mostAllocations)
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
	h := startLiveSet(b, 5).holder()
	b.ReportAllocs()
	for b.Loop() {
		h.cycle(b)
	}
}
