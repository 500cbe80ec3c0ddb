package run

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/redlock/ballot"
	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/quorum"
)

// A ballotCase is one master's answer to a script: to an examined run, and to the same
// script as a recognised release.
type ballotCase struct {
	name     string
	examined quorum.Answer[effect.Result]
	plain    quorum.Answer[releaseAnswer]
}

func releaseCases(absent, another string) []ballotCase {
	there := func(value string) []effect.Image {
		return []effect.Image{{Dump: []byte("the payload of " + value), PTTL: 60000}}
	}
	gone := []effect.Image{{PTTL: effect.NoKey}}
	one := func(name, reply string, before, after []effect.Image) ballotCase {
		c := ballotCase{name: name}
		c.examined = quorum.Answer[effect.Result]{State: quorum.Answered, Value: effect.Result{Reply: []byte(reply), Before: before, After: after}}
		c.plain = quorum.Answer[releaseAnswer]{State: quorum.Answered, Value: releaseAnswer{reply: []byte(reply)}}
		return c
	}
	deleted := one("deleted", ":1\r\n", there("mine"), gone)
	deleted.plain.Value = releaseAnswer{done: true}
	return []ballotCase{
		deleted,
		one("absent", absent, gone, gone),
		one("another", another, there("another"), there("another")),
		one("a third", another, there("third"), there("third")),
		one("no string", "-WRONGTYPE\r\n", there("list"), there("list")),
		{name: "failed", examined: quorum.Answer[effect.Result]{State: quorum.Unknown}, plain: quorum.Answer[releaseAnswer]{State: quorum.Unknown}},
	}
}

// silent is an Observer that does nothing.
type (
	ofMasters interface{ master.Observer }
	silent    struct {
		ofMasters
		ballot.Observer
	}
)

func (silent) Decided(ballot.Kind, ballot.Verdict, time.Duration) {}

// runnerOfNothing is a Runner without masters.
func runnerOfNothing(t *testing.T) *Runner {
	var limits master.Limits
	limits.ClockDrift = 0.01
	masters := master.New(t.Context(), master.Options{Observer: silent{}, Log: slog.New(slog.DiscardHandler), Limits: limits})
	return New(ballot.New(masters, nil, silent{}), nil, nil)
}

// eachVector calls f with each way in which the masters can vote. Their order does not
// matter.
func eachVector(masters int, cases []ballotCase, f func([]ballotCase)) {
	var add func(vector []ballotCase, rest []ballotCase)
	add = func(vector, rest []ballotCase) {
		if len(vector) == masters {
			f(vector)
			return
		}
		for i := range rest {
			add(append(slices.Clone(vector), rest[i]), rest[i:])
		}
	}
	add(nil, cases)
}

// TestRecognisedReleaseDecidesAsItsExaminedRun checks all combinations of votes. If the
// examined run has an answer, the recognised release has the same. It has one more often,
// because it compares only the refusals, not what else the key holds.
func TestRecognisedReleaseDecidesAsItsExaminedRun(t *testing.T) {
	r := &Request{Keys: [][]byte{[]byte("lock")}, gaveUp: new(atomic.Bool), earlier: &earlier{deleted: map[int]bool{}}}
	try := &release{success: []byte(":1\r\n")}
	for _, replies := range [][2]string{{":0\r\n", ":0\r\n"}, {":-1\r\n", ":0\r\n"}, {"+OK\r\n", "-ERR not yours\r\n"}} {
		for _, masters := range []int{1, 2, 3, 4, 5, 7} {
			more := 0
			l := runnerOfNothing(t)
			eachVector(masters, releaseCases(replies[0], replies[1]), func(vector []ballotCase) {
				var names []string
				var bracket []quorum.Answer[effect.Result]
				var plain []quorum.Answer[releaseAnswer]
				for _, c := range vector {
					names = append(names, c.name)
					bracket = append(bracket, c.examined)
					plain = append(plain, c.plain)
				}
				want := r.outcome(ballot.Outcome{Verdict: l.decideRun(r, bracket, time.Millisecond)}, bracket)
				got := try.outcome(ballot.Outcome{Verdict: releaseVerdict(plain)}, plain)
				deletions := got.Verdict == ballot.Won
				switch {
				case want.Verdict == ballot.NoQuorum:
					if got.Verdict != ballot.NoQuorum {
						more++
					}
				case string(want.Reply) != string(got.Reply) || deletions != (string(want.Reply) == ":1\r\n"):
					t.Errorf("%q: %v %q, and examined %v %q", names, got.Verdict, got.Reply, want.Verdict, want.Reply)
				}
				if !deletions && got.Verdict != ballot.NoQuorum && quorum.Count(plain, releaseAnswer.did).Release() != ballot.Lost {
					t.Errorf("%q: refused %q although it may have been released", names, got.Reply)
				}
			})
			t.Logf("%d masters, replies %q: %d more answers", masters, replies, more)
		}
	}
}
