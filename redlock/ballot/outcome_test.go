package ballot

import (
	"testing"
	"time"
)

// The error in the client's log tells an operator why nobody got the lock, and how long
// that will last.
func TestNoQuorumSaysWhy(t *testing.T) {
	until := time.Date(2026, 11, 21, 6, 10, 0, 7e8, time.FixedZone("", 3600))
	for _, row := range []struct {
		outcome Outcome
		want    string
	}{
		{Outcome{Voting: 2, Answered: 2, Asked: 5, Needed: 3}, "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{Outcome{Voting: 2, Answered: 2, Asked: 5, Needed: 3, Unable: 3}, "QUORUMLOST 2 of 5 lock masters can vote, 3 needed; 3 answered with an error"},
		{Outcome{Voting: 5, Answered: 2, Asked: 5, Needed: 3, Unasked: 3}, "QUORUMLOST only 2 of 5 lock masters answered in time, 3 needed; 3 could not be asked"},
		{Outcome{Voting: 2, Answered: 0, Asked: 5, Needed: 3}, "QUORUMLOST 2 of 5 lock masters can vote, 3 needed"},
		{Outcome{Voting: 5, Answered: 2, Asked: 5, Needed: 3}, "QUORUMLOST only 2 of 5 lock masters answered in time, 3 needed"},
		{Outcome{Voting: 4, Answered: 4, Asked: 5, Needed: 3}, "QUORUMLOST the answers of 4 lock masters differ, 3 alike needed"},
		{Outcome{Voting: 2, Answered: 2, Asked: 5, Needed: 3, Quarantined: 2, Until: until},
			"QUORUMLOST 2 of 5 lock masters can vote, 3 needed; 2 are in quarantine, the first until 2026-11-21T05:10:00Z"},
		{Outcome{Voting: 2, Answered: 2, Asked: 5, Needed: 3, Quarantined: 1, Until: until},
			"QUORUMLOST 2 of 5 lock masters can vote, 3 needed; 1 is in quarantine, until 2026-11-21T05:10:00Z"},
		{Outcome{Voting: 3, Answered: 3, Asked: 5, Needed: 3, Quarantined: 1, Until: until},
			"QUORUMLOST the answers of 3 lock masters differ, 3 alike needed; 1 is in quarantine, until 2026-11-21T05:10:00Z"},
	} {
		if got := row.outcome.NoQuorumError(); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
}
