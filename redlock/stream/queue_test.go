package stream

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// The debts and calls that wait for an unreachable or silent master are bounded, and go
// out on the next connection.
func TestWhatWaitsIsBoundedByItsSize(t *testing.T) {
	for name, state := range map[string]connectionState{"away": down, "silent": up} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Owner: quietOwner{}})
			s.state = state
			large := strings.Repeat("l", 1<<20)
			for range (maxDebtBytes + 2*maxAsking) / len(large) {
				s.Deliver(&Debt{Key: "lock", Value: large}, time.Now(), true)
			}
			if s.debtBytes < maxDebtBytes || max(s.debtBytes-maxDebtBytes, s.asking-maxAsking) > 2*len(large) {
				t.Errorf("%d bytes wait, and %d are unanswered", s.debtBytes, s.asking)
			}
			s.giveUpCalls(down)
			s.takeOver(nil, Greeting{}, time.Now())
			if s.debtBytes != 0 || s.asking != 0 || len(s.calls) < maxDebtBytes/len(large) {
				t.Errorf("%d bytes still wait, %d are unanswered, and the next connection begins with %d debts", s.debtBytes, s.asking, len(s.calls))
			}
		})
	}
}

// Two late answers may each prolong what was seen of a lock, and hand that on. The second
// waits for the first, or else the first could hand on an earlier end after it.
func TestALifetimeIsNotSetBack(t *testing.T) {
	now := time.Now()
	seen, life := NewLifetime(now.Add(time.Second)), NewLifetime(now)
	seen.mu.Lock() // the first reads now
	var both sync.WaitGroup
	both.Go(func() { life.Become(seen) })
	for limit := now.Add(10 * time.Second); life.mu.TryLock(); runtime.Gosched() {
		life.mu.Unlock()
		if time.Now().After(limit) {
			t.Error("another may come in while the first reads")
			break
		}
	}
	seen.until = now.Add(2 * time.Second)
	seen.mu.Unlock()
	both.Go(func() { life.Become(seen) })
	both.Wait()
	if end, _ := life.end(); !end.Equal(now.Add(2 * time.Second)) {
		t.Errorf("it ends after %v", end.Sub(now))
	}
}
