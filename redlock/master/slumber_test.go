package master

import (
	"testing"
	"time"
)

// A thread that waits for the processor between two readings does not seem to have been suspended.
func TestAPauseBetweenReadingsIsNoSuspension(t *testing.T) {
	const suspended = time.Hour
	for _, pause := range []time.Duration{0, slumberStep - 1, slumberStep, time.Minute} {
		for at := range 4 { // reading after which the thread waits
			now, readings := time.Duration(0), 0
			read := func(ahead time.Duration) func() time.Duration {
				return func() time.Duration {
					shown := now + ahead
					if readings == at {
						now += pause
					}
					readings++
					return shown
				}
			}
			if got := apart(read(suspended), read(0)); (got - suspended).Abs() >= slumberStep {
				t.Errorf("with a pause of %v after reading %d the machine was suspended for %v", pause, at+1, got)
			}
		}
	}
}
