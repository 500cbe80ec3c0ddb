package stream

import (
	"log/slog"
	"runtime"
	"slices"
	"strconv"
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

// A patientOwner never takes a master for silent.
type patientOwner struct{ quietOwner }

func (patientOwner) Timeout() time.Duration { return time.Hour }

// A master that comes back with very many debts gets them in portions, oldest first. It is
// asked for no lock before the last is paid, whatever it answers to them.
func TestManyDebtsArePaidInPortions(t *testing.T) {
	const owed = 2*mostPaid + 10
	s := New(Options{Owner: patientOwner{}, Log: slog.New(slog.DiscardHandler)})
	s.state = down
	for i := range owed {
		s.Owe(&Debt{Key: strconv.Itoa(i), Value: "v"})
	}
	s.takeOver(nil, Greeting{}, time.Now())
	paid := 0
	for _, portion := range []int{mostPaid, mostPaid, 10} {
		calls := slices.Clone(s.calls[s.head:])
		if len(calls) != portion {
			t.Fatalf("after %d debts %d are sent", paid, len(calls))
		}
		for _, c := range calls {
			if s.mayCreate(time.Now()) {
				t.Fatalf("after %d debts of %d the master is asked for a lock", paid, owed)
			}
			if key := c.Asker.(*payment).debt.Key; key != strconv.Itoa(paid) {
				t.Fatalf("debt %s is sent as number %d", key, paid)
			}
			s.answer([]Call{c}, [][]byte{[]byte(":1\r\n")}, Judgement{})
			paid++
		}
	}
	if !s.mayCreate(time.Now()) || len(s.debts) > 0 || s.debtBytes != 0 {
		t.Errorf("all debts are paid, and the stream has %d, %d bytes", len(s.debts), s.debtBytes)
	}
}

// A lock may be asked for while the stream dials. Then all debts come before that call.
func TestAllDebtsComeBeforeALockThatWaits(t *testing.T) {
	for name, gate := range map[string]bool{"in the queue": false, "behind a gate": true} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Owner: patientOwner{}})
			silent := AskerFunc(func([][]byte, Judgement, error) {})
			now := time.Now()
			if gate && !s.Send(Call{Replies: 1, Asker: silent, Gates: true}, Sending{}, now) || !s.Send(Call{Replies: 1, Asker: silent}, Sending{Creates: true}, now) {
				t.Fatal("the stream takes no calls while it dials")
			}
			for range mostPaid + 1 {
				s.Owe(&Debt{Key: "lock", Value: "v"})
			}
			if s.mayCreate(now) {
				t.Error("one more call that may create a lock is taken")
			}
			s.takeOver(nil, Greeting{}, now)
			if s.unpaid != mostPaid+1 || len(s.debts) > 0 {
				t.Errorf("%d debts come before it, and %d do not", s.unpaid, len(s.debts))
			}
		})
	}
}

// A master that serves no debt gets the next portion with a beat only.
func TestDebtsThatAreNotServedWait(t *testing.T) {
	s := New(Options{Owner: patientOwner{}, Log: slog.New(slog.DiscardHandler)})
	s.state = down
	for range mostPaid + 1 {
		s.Owe(&Debt{Key: "lock", Value: "v"})
	}
	s.takeOver(nil, Greeting{}, time.Now())
	for _, c := range slices.Clone(s.calls[s.head:]) {
		s.answer([]Call{c}, [][]byte{[]byte("-LOADING Redis is loading the dataset in memory\r\n")}, Judgement{})
	}
	if len(s.debts) != mostPaid+1 || len(s.calls) > s.head || s.unpaid != 0 {
		t.Errorf("%d debts are kept, %d calls are unanswered, %d debts unpaid", len(s.debts), len(s.calls)-s.head, s.unpaid)
	}
}

// Nobody waits for the stream while it asks what the calls of a lost connection owe. What is
// owed meanwhile comes behind that.
func TestALostConnectionHoldsNobodyUp(t *testing.T) {
	s := New(Options{Owner: quietOwner{}, Log: slog.New(slog.DiscardHandler)})
	s.Owe(&Debt{Key: "older"})
	s.state = up
	s.calls = []Call{{Replies: 1, Asker: owesMeanwhile{s}}}
	if calls, sent := s.giveUpCalls(dialling); len(calls) != 1 || sent != 1 || s.state != dialling {
		t.Errorf("%d calls, %d of them sent, and the state is %d", len(calls), sent, s.state)
	}
	var keys []string
	for _, d := range s.debts {
		keys = append(keys, d.Key)
	}
	if want := []string{"older", "of the call", "newer"}; !slices.Equal(keys, want) {
		t.Errorf("the debts are %q, want %q", keys, want)
	}
}

// owesMeanwhile is the asker of a call. While the stream asks what it owes, somebody else
// uses the stream.
type owesMeanwhile struct{ stream *Stream }

func (owesMeanwhile) Answered(*Stream, *Call, [][]byte, Judgement, error) {}

func (o owesMeanwhile) Owed(*Call) *Debt {
	o.stream.Deliver(&Debt{Key: "newer"}, time.Now(), true)
	return &Debt{Key: "of the call"}
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
