package ballot

import (
	"context"
	"testing"
	"time"

	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
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

// Votes by another number of masters could make a quorum of neither.
func TestVotesOfAnotherNumberDoNotCount(t *testing.T) {
	b := &Ballot[bool]{Answers: make([]quorum.Answer[bool], 3)}
	for j, want := range map[stream.Judgement]bool{
		{Votes: true}:              true, // in ballots of any number
		{Votes: true, Masters: 3}:  true,
		{Votes: true, Masters: 4}:  false,
		{Votes: false, Masters: 3}: false,
	} {
		if got := b.counts(j); got != want {
			t.Errorf("%+v counts: %v", j, got)
		}
	}
}

// A verdict may come in the moment of the deadline.
func TestADeadlineChangesNoVerdict(t *testing.T) {
	b := &Ballot[bool]{Verdict: Lost, over: make(chan ending, 2)}
	b.Decide = func([]quorum.Answer[bool], time.Duration) Verdict { return Won }
	if b.expire(); b.Verdict != Lost || b.expired || len(b.over) > 0 {
		t.Errorf("the verdict becomes %v", b.Verdict)
	}
}

// A question that follows its guard too late could be executed after the client has heard that it
// was not.
func TestAQuestionFollowsItsGuardWhileItMay(t *testing.T) {
	for _, row := range []struct {
		verdict Verdict
		stopped bool
		left    time.Duration
		want    bool
	}{
		{Pending, false, time.Hour, true},
		{Pending, false, -time.Second, false},
		{Won, false, time.Hour, true},
		{Won, false, -time.Second, false},
		{Won, true, time.Hour, false},
		{Lost, false, time.Hour, false},
		{NoQuorum, false, time.Hour, false},
	} {
		b := &Ballot[bool]{Verdict: row.verdict, deadline: time.Now().Add(row.left)}
		b.Guard = &Guard[bool]{Stopped: func([]quorum.Answer[bool]) bool { return row.stopped }}
		if got := b.mayFollow(); got != row.want {
			t.Errorf("%+v: it follows: %v", row, got)
		}
	}
}

// MIN_VALIDITY of the published algorithm, and 2 ms for Redis's own precision.
func TestValidityIsWithoutDrift(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop() // only the limits are asked for
	options := master.Options{Observer: struct{ master.Observer }{}}
	options.Limits.ClockDrift = 0.01
	x := &Box{Masters: master.New(ctx, options)}
	if got := x.Validity(10*time.Second, 3*time.Second); got != 6898*time.Millisecond {
		t.Errorf("a TTL of 10 s, 3 s after its beginning, is valid for %v", got)
	}
	for drift, want := range map[float64]time.Duration{0: 3 * time.Millisecond, 0.01: 3 * time.Millisecond, 0.5: 5 * time.Millisecond} {
		if got := LeastTTL(drift); got != want {
			t.Errorf("with a drift of %v the shortest TTL is %v", drift, got)
		}
	}
}
