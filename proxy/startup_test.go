package proxy

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redlock-proxy/redlock"
)

// The first moments end when a quorum votes, when it is known that none will
// soon, when the process ends, and after a while.
func TestTheFirstMomentsEnd(t *testing.T) {
	states := func(text string) redlock.Status {
		status := redlock.Status{Needed: 3}
		for word := range strings.FieldsSeq(text) {
			for _, state := range []redlock.MasterState{redlock.Unreachable, redlock.Starting, redlock.Quarantined, redlock.Voting, redlock.Rejected} {
				if state.String() == word {
					status.Masters = append(status.Masters, redlock.MasterStatus{State: state})
				}
			}
		}
		return status
	}
	for _, row := range []struct {
		then string
		want time.Duration
	}{
		{"voting voting voting unreachable unreachable", time.Second},
		{"voting voting starting unreachable unreachable", startPatience},
		{"voting voting voting starting unreachable", startPatience},
		{"quarantined quarantined rejected unreachable unreachable", time.Second},
		{"quarantined quarantined starting starting voting", startPatience},
		{"unreachable unreachable unreachable unreachable unreachable", startPatience},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			over := afterStart(t.Context(), func() redlock.Status {
				if time.Since(begun) < time.Second {
					return states("unreachable starting starting starting unreachable")
				}
				return states(row.then)
			})
			if <-over; time.Since(begun).Round(10*time.Millisecond) != row.want {
				t.Errorf("%s: it ended after %v", row.then, time.Since(begun))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun := time.Now()
		<-afterStart(ctx, func() redlock.Status { return redlock.Status{Needed: 1} })
		if time.Since(begun) != 0 {
			t.Error("who has gone is waited for")
		}
	})
}
