package master

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// The first request in a database waits for votes, for as long as a ballot may take. The next one
// waits no more, because no state has changed since.
func TestAFirstRequestWaitsForVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := newSet(ctx, unanswered, unanswered, unanswered)
		for _, want := range []time.Duration{5 * time.Second, 0} {
			began := time.Now()
			s.Prepare(1, nil)
			if took := time.Since(began); took != want {
				t.Errorf("it waited for %v, want %v", took, want)
			}
		}
		end()
		s.Wait()
	})
}

// The state of a master changes all the time.
func TestAFirstRequestWaitsNoLongerThanABallotMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		failing := func(ctx context.Context) (net.Conn, error) {
			time.Sleep(time.Second)
			return nil, fmt.Errorf("dialled in vain at %v", time.Now())
		}
		s := newSet(ctx, failing, unanswered, unanswered)
		began := time.Now()
		s.Prepare(1, nil)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it waited for %v", took)
		}
		end()
		s.Wait()
	})
}
