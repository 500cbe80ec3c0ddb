package ballot

import (
	"context"
	"testing"
	"time"

	"redlock-proxy/redlock/quorum"
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
		{Outcome{Voting: 2, Answered: 2, Asked: 5, Needed: 3, Unable: 3}, "QUORUMLOST 2 of 5 lock masters can vote, 3 needed; 3 answered with an error, and /readyz of the proxy says which"},
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
		{Outcome{Voting: 3, Answered: 3, Asked: 5, Needed: 3, Unasked: 2}, "QUORUMLOST the answers of 3 lock masters differ, 3 alike needed"},
		{Outcome{Voting: 5, Answered: 5, Asked: 5, Needed: 3, Outrun: true}, "QUORUMLOST other clients were given tokens first, to the last try; ask again"},
	} {
		if got := row.outcome.NoQuorumError(); got != row.want {
			t.Errorf("got  %s\nwant %s", got, row.want)
		}
	}
}

// A split vote may end otherwise in the next try. A lack of answers would not.
func TestOnlySplitVotesAreTriedAgain(t *testing.T) {
	for _, row := range []struct {
		outcome Outcome
		try     int
		want    bool
	}{
		{Outcome{Verdict: NoQuorum, Answered: 3, Needed: 3}, 0, true},
		{Outcome{Verdict: NoQuorum, Answered: 3, Needed: 3}, 1, false},
		{Outcome{Verdict: NoQuorum, Answered: 2, Needed: 3}, 0, false},
		{Outcome{Verdict: NoQuorum, Answered: 2, Needed: 3, Overtaken: true}, overtakenTries - 1, true},
		{Outcome{Verdict: NoQuorum, Answered: 2, Needed: 3, Overtaken: true}, overtakenTries, false},
		{Outcome{Verdict: Lost, Answered: 3, Needed: 3}, 0, false},
	} {
		if got := row.outcome.Split() && (Retry{Count: 1}).May(row.try, row.outcome); got != row.want {
			t.Errorf("%+v is tried again after %d tries: %v", row.outcome, row.try, got)
		}
	}
}

func TestNothingIsTriedAgainForAClientThatIsGone(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	tries := 0
	o := Retry{Count: 3, Delay: time.Hour}.Again(gone, true, func() Outcome {
		tries++
		return Outcome{Verdict: NoQuorum, Answered: 3, Needed: 3}
	})
	if tries != 1 || !o.Split() {
		t.Errorf("%d tries came to %+v", tries, o)
	}
}

func TestAnOutcomeCountsAnswers(t *testing.T) {
	b := &Ballot[bool]{Verdict: Lost}
	for _, s := range []quorum.State{quorum.Answered, quorum.Awaited, quorum.Unasked, quorum.Unable, quorum.Unknown, quorum.Discounted, quorum.Unasked} {
		b.Answers = append(b.Answers, quorum.Answer[bool]{State: s})
	}
	for expired, want := range map[bool]int{false: 2, true: 1} {
		b.expired = expired
		if o := b.Outcome(); o.Answered != want || o.Unable != 1 || o.Unasked != 2 {
			t.Errorf("at its deadline is %v: %+v", expired, o)
		}
	}
}
