package master

import (
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
)

// A process that stood still has unread answers, which say nothing about its masters. A place that
// leaves questions unanswered for a whole beat is unreachable.
func TestAMasterIsSilentForAWholeBeat(t *testing.T) {
	now := time.Now()
	var s silence
	for i, row := range []struct {
		unanswered, late bool
		after            time.Duration // time since the last beat
		want             bool
	}{
		{true, false, 0, false},
		{true, false, roster.BeatLength, true},
		{true, true, time.Minute, false}, // after a standstill the time starts anew
		{true, false, time.Millisecond, false},
		{false, false, roster.BeatLength, false},
		{true, false, roster.BeatLength, false},
		{true, false, 2 * roster.BeatLength, true},
	} {
		now = now.Add(row.after)
		if got := s.lasts(row.unanswered, row.late, now); got != row.want {
			t.Errorf("beat %d: %v", i+1, got)
		}
	}
}
