package stream

import (
	"strings"
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
