package ballot

import (
	"testing"
	"time"

	"redlock-proxy/redlock/quorum"
)

// What was read in time may be too late to win, because the process may have been paused since.
func TestValidityCountsFromTheVerdict(t *testing.T) {
	wins := func(_ []quorum.Answer[bool], elapsed time.Duration) Verdict {
		if elapsed < time.Second {
			return Won
		}
		return NoQuorum
	}
	for _, row := range []struct {
		began, read time.Duration // before now
		want        Verdict
	}{
		{500 * time.Millisecond, 400 * time.Millisecond, Won},
		{2 * time.Second, 1900 * time.Millisecond, NoQuorum},
		{2 * time.Second, 0, NoQuorum},
	} {
		now := time.Now()
		b := &Ballot[bool]{Started: now.Add(-row.began)}
		b.Decide = wins
		if got := b.decide(nil, now.Add(-row.read)); got != row.want {
			t.Errorf("begun %v ago, read %v ago: %v", row.began, row.read, got)
		}
	}
}
