package redlock

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/roster"
	"redlock-proxy/redlock/script"
)

// A ballotCase is what one master makes of a script, as an examined run shows
// it and as a recognised one does.
type ballotCase struct {
	name     string
	examined quorum.Answer[effect.Result]
	said     quorum.Answer[said]
}

func releaseCases(absent, another string) []ballotCase {
	there := func(value string) []effect.Image { return []effect.Image{{Dump: dumpString(value), PTTL: 60000}} }
	gone := []effect.Image{{PTTL: effect.NoKey}}
	one := func(name, reply string, before, after []effect.Image) ballotCase {
		c := ballotCase{name: name}
		c.examined = quorum.Answer[effect.Result]{State: quorum.Answered, Value: effect.Result{Reply: []byte(reply), Before: before, After: after}}
		c.said = quorum.Answer[said]{State: quorum.Answered, Value: said{reply: []byte(reply)}}
		return c
	}
	deleted := one("deleted", ":1\r\n", there("mine"), gone)
	deleted.said.Value = said{done: true}
	return []ballotCase{
		deleted,
		one("absent", absent, gone, gone),
		one("another", another, there("another"), there("another")),
		one("a third", another, there("third"), there("third")),
		one("no string", "-WRONGTYPE\r\n", there("list"), there("list")),
		{name: "failed", examined: quorum.Answer[effect.Result]{State: quorum.Unknown}, said: quorum.Answer[said]{State: quorum.Unknown}},
	}
}

// eachVector calls f with every way in which so many masters can vote,
// whatever their order.
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

// TestRecognisedReleaseDecidesAsItsExaminedRun: whatever the masters say,
// where the examined run has an answer the recognised one has the same. It has
// one more often: votes that refuse alike do so whatever else the key holds.
func TestRecognisedReleaseDecidesAsItsExaminedRun(t *testing.T) {
	r := &RunRequest{Keys: [][]byte{[]byte("lock")}, gaveUp: new(atomic.Bool)}
	s := &recognised{Call: script.Call{Deleted: ":1\r\n"}}
	for _, replies := range [][2]string{{":0\r\n", ":0\r\n"}, {":-1\r\n", ":0\r\n"}, {"+OK\r\n", "-ERR not yours\r\n"}} {
		for _, masters := range []int{1, 2, 3, 4, 5, 7} {
			more := 0
			l := &Locker{voters: newVoters(roster.New(make([]roster.Server, masters), false, 0), nil, slog.New(slog.DiscardHandler))}
			l.cfg.Store(&Config{ClockDrift: 0.01})
			eachVector(masters, releaseCases(replies[0], replies[1]), func(vector []ballotCase) {
				var names []string
				bracket := &ballot[effect.Result]{locker: l, expired: true}
				plain := &ballot[said]{locker: l, expired: true}
				for _, c := range vector {
					names = append(names, c.name)
					bracket.answers = append(bracket.answers, c.examined)
					plain.answers = append(plain.answers, c.said)
				}
				bracket.verdict = l.decideRun(r, bracket.answers, time.Millisecond)
				plain.verdict = releaseVerdict(plain.answers)
				want, got := r.outcome(bracket), s.outcome(plain)
				deletions := got.Verdict == Won
				switch {
				case want.Verdict == NoQuorum:
					if got.Verdict != NoQuorum {
						more++
					}
				case string(want.Reply) != string(got.Reply) || deletions != (string(want.Reply) == ":1\r\n"):
					t.Errorf("%q: %v %q, and examined %v %q", names, got.Verdict, got.Reply, want.Verdict, want.Reply)
				}
				if !deletions && got.Verdict != NoQuorum && countSaid(plain.answers).Release() != Lost {
					t.Errorf("%q: refused %q although it may have been released", names, got.Reply)
				}
			})
			t.Logf("%d masters, replies %q: %d more answers", masters, replies, more)
		}
	}
}
