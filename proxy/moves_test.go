package proxy

import (
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/redlock"
)

// Keys that leave the masters wait for the longest lock that any of them has
// granted; where no quorum tells, for as long as a lock is covered.
func TestLongestLockOnTheMasters(t *testing.T) {
	cfg := &config.Config{RestartDelay: 30 * time.Second, MaxQuarantine: 10 * time.Minute}
	for _, row := range []struct {
		longest [3]time.Duration
		voting  int
		want    time.Duration
	}{
		{[3]time.Duration{time.Second, time.Second, time.Second}, 3, 30 * time.Second},
		{[3]time.Duration{time.Second, time.Second, time.Minute}, 3, time.Minute},
		{[3]time.Duration{time.Minute, time.Hour, time.Minute}, 2, 10 * time.Minute},
		{[3]time.Duration{time.Second, time.Second, time.Second}, 1, 10 * time.Minute},
	} {
		status := redlock.Status{Needed: 2, Set: "s"}
		for i, longest := range row.longest {
			state := redlock.Voting
			if i >= row.voting {
				state = redlock.Unreachable
			}
			status.Masters = append(status.Masters, redlock.MasterStatus{State: state, Longest: longest})
		}
		if got := longestLock(status, cfg); got != row.want {
			t.Errorf("%+v: %v", row, got)
		}
	}
}
