package master

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock/marker"
)

// The first request in a database waits for votes, for as long as a ballot may take. The next one
// waits no more, because no state has changed since.
func TestAFirstRequestWaitsForVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := newSet(ctx, unanswered, unanswered, unanswered)
		for _, db := range []int{1, marker.Databases} {
			for _, want := range []time.Duration{5 * time.Second, 0} {
				began := time.Now()
				s.Prepare(db, nil)
				if took := time.Since(began); took != want {
					t.Errorf("database %d: it waited for %v, want %v", db, took, want)
				}
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
		s.preparedFor(1).Store(&time.Time{}) // before the masters were changed
		began = time.Now()
		s.voters.learned.Store(&began)
		s.Prepare(1, nil)
		if took := time.Since(began); took != 5*time.Second+settling {
			t.Errorf("after a change of the masters it waited for %v", took)
		}
		end()
		s.Wait()
	})
}
