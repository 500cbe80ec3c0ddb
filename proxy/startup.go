package proxy

import (
	"context"
	"time"

	"redlock-proxy/redlock"
)

// A proxy that has just started reaches its masters first, and watches their
// clocks for a while before it counts their votes. To refuse locks meanwhile
// would make each restart of a proxy an outage, so lock commands that come
// before the masters vote are held back and answered then. It is for the first
// moments of a process only: later, who cannot know says so at once.

const (
	// startPatience is how long after the start commands are held back at most.
	startPatience = 3 * time.Second
	// startLook is how often it is looked whether that can end.
	startLook = 5 * time.Millisecond
)

// afterStart returns a channel that is closed when the first moments are over:
// enough masters vote, or it is known that not enough will soon, or patience or
// the process ends.
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

// decided tells whether waiting a moment changes nothing: a quorum votes and no
// other master is about to, or none can while masters are in quarantine or must
// not vote.
func decided(status redlock.Status) bool {
	may, coming := len(status.Masters), 0
	for _, master := range status.Masters {
		switch master.State {
		case redlock.Quarantined, redlock.Barred:
			may--
		case redlock.Uncertified:
			coming++
		}
	}
	return status.Ready() && coming == 0 || may < status.Needed
}

// awaitStart returns when the first moments of the process are over, or the
// client has gone.
func (p *lockPlane) awaitStart(ctx context.Context) {
	if p.starting == nil {
		return
	}
	select {
	case <-p.starting:
		return
	default:
	}
	select {
	case <-p.starting:
	case <-ctx.Done():
	}
}
