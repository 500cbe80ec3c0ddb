package ballot

import (
	"context"
	"time"

	"redlock-proxy/redlock/loop"
)

// Retry says how often a ballot that split its votes is tried again.
type Retry struct {
	Count int           // tries after the first
	Delay time.Duration // the longest random wait before each
}

// Again calls ask until its outcome is not Split, at most Count times more. Copies of a
// lock expire a little apart, so answers may differ until the last copy has gone. The
// wait before each try is random: up to Delay if the question may create a lock, as for
// an acquire, and otherwise up to expiryPause. If ctx ends, Again returns the last outcome.
func (r Retry) Again(ctx context.Context, creates bool, ask func() Outcome) Outcome {
	pause := min(r.Delay, expiryPause)
	if creates {
		pause = r.Delay
	}
	l := loop.FromContext(ctx).Loop()
	for try := 0; ; try++ {
		o := ask()
		if !o.Split() || !r.May(try, o) {
			return o
		}
		if l.Wait(l.Draw(pause+1), ctx.Done()) != loop.Late {
			return o
		}
	}
}

// overtakenTries is how often a ballot is tried again at least if it was Overtaken. A change of the
// number of masters takes two steps at once.
const overtakenTries = 3

// May tells whether a ballot may be tried again after so many tries.
func (r Retry) May(try int, o Outcome) bool {
	return try < r.Count || o.Overtaken && try < overtakenTries
}

// expiryPause is about the time between the expiry of a lock's first and last copy.
const expiryPause = 10 * time.Millisecond
