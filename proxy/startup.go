package proxy

import (
	"context"
	"time"

	"redlock-proxy/proxy/events"
	"redlock-proxy/redlock"
)

// A proxy that has just started must reach its masters, and watch their clocks for a while,
// before it counts their votes. If it refused lock commands meanwhile, each restart of a
// proxy would be an outage. So these commands wait until the masters vote. They wait only
// in the first moments of a process. Later a lock command without a quorum fails at once.

const (
	// startPatience bounds the wait, counted from the start of the process.
	startPatience = 3 * time.Second
	// startLook is the pause between two looks at the masters' states.
	startLook = 5 * time.Millisecond
)

// afterStart returns a channel that is closed when lock commands need not wait any more.
// That is so when enough masters vote, when it is known that not enough will vote soon,
// after startPatience, or when ctx ends.
func afterStart(ctx context.Context, status func() redlock.Status) <-chan struct{} {
	over := make(chan struct{})
	go func() {
		defer close(over)
		ctx, cancel := context.WithTimeout(ctx, startPatience)
		defer cancel()
		look := time.NewTicker(startLook)
		defer look.Stop()
		for !decided(status()) {
			select {
			case <-look.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return over
}

// decided reports whether a short wait would change nothing. Either a quorum votes and no
// other master is about to vote. Or too many masters are in quarantine or rejected, so that
// no quorum is possible.
func decided(status redlock.Status) bool {
	masters := events.State{Status: status}
	coming, never := masters.Count(redlock.Starting), masters.Count(redlock.Quarantined, redlock.Rejected)
	return status.Ready() && coming == 0 || len(status.Masters)-never < status.Needed
}
