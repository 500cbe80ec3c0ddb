package ballot

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock/master"
	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// The questions name a rule, and say what is so by words and by numbers:
//
//	says voting=2 answered=2 asked=5 needed=3 -> QUORUMLOST ...    the error of an outcome
//	again none answered=3 needed=3 try=1 -> false                  whether it is tried again
//	in-time won 1s -> lost                                         a verdict so long after the beginning, with a TTL of 1 s
//	follows pending left=1h -> true                                a question behind its guard
//	counts votes masters=3 -> true                                 a vote in a ballot of three masters
//	decided began=2s read=0s -> none                               what wins in the first second, so long ago
//	own "-ERR what" -> ...                                         a reply to a client's own command
func TestData(t *testing.T) { datatest.Run(t, ask) }

func ask(t *testing.T, question string) string {
	rule, rest, _ := strings.Cut(question, " ")
	words := strings.Fields(rest)
	number := func(name string) int { n, _ := strconv.Atoi(value(words, name)); return n }
	lasting := func(name string) time.Duration { d, _ := time.ParseDuration(value(words, name)); return d }
	verdict := Pending
	for _, v := range []Verdict{Won, Lost, NoQuorum} {
		if slices.Contains(words, verdictText(v)) {
			verdict = v
		}
	}
	o := Outcome{
		Verdict: verdict, Voting: number("voting"), Answered: number("answered"), Asked: number("asked"), Needed: number("needed"), Unable: number("unable"),
		Unasked: number("unasked"), Quarantined: number("quarantined"), Outrun: slices.Contains(words, "outrun"), Overtaken: slices.Contains(words, "overtaken"), Abandoned: slices.Contains(words, "abandoned"),
	}
	switch rule {
	case "says":
		if o.Quarantined > 0 {
			o.Until = time.Date(2026, 11, 21, 6, 10, 0, 7e8, time.FixedZone("", 3600))
		}
		return o.NoQuorumError()
	case "again":
		return strconv.FormatBool(o.Split() && (Retry{Count: 1}).May(number("try"), o))
	case "in-time":
		return verdictText(boxOfNothing(t).InTime(verdict, time.Second, lasting("after")))
	case "follows":
		b := &Ballot[bool]{Verdict: verdict, deadline: time.Now().Add(lasting("left"))}
		b.Guard = &Guard[bool]{Stopped: func([]quorum.Answer[bool]) bool { return slices.Contains(words, "stopped") }}
		return strconv.FormatBool(b.mayFollow())
	case "counts":
		b := &Ballot[bool]{Answers: make([]quorum.Answer[bool], 3)}
		return strconv.FormatBool(b.counts(stream.Judgement{Votes: slices.Contains(words, "votes"), Masters: number("masters")}))
	case "decided":
		now := time.Now()
		b := &Ballot[bool]{Started: now.Add(-lasting("began"))}
		b.Decide = func(_ []quorum.Answer[bool], elapsed time.Duration) Verdict {
			if elapsed < time.Second {
				return Won
			}
			return NoQuorum
		}
		return verdictText(b.decide(nil, now.Add(-lasting("read"))))
	case "own":
		reply, err := strconv.Unquote(rest)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(OwnAs([]byte(reply), true))
	case "least-ttl":
		drift, _ := strconv.ParseFloat(rest, 64)
		return LeastTTL(drift).String()
	}
	t.Fatalf("no such rule: %s", question)
	return ""
}

func verdictText(v Verdict) string {
	return map[Verdict]string{Pending: "pending", Won: "won", Lost: "lost", NoQuorum: "none"}[v]
}

// value is what follows "name=" in the words.
func value(words []string, name string) string {
	for _, word := range words {
		if text, ok := strings.CutPrefix(word, name+"="); ok {
			return text
		}
	}
	return ""
}

// boxOfNothing has no masters. Clocks may run apart by 1%.
func boxOfNothing(t *testing.T) *Box {
	ctx, stop := context.WithCancel(t.Context())
	stop() // only the limits are asked for
	options := master.Options{Observer: struct{ master.Observer }{}}
	options.Limits.ClockDrift = 0.01
	return &Box{Masters: master.New(ctx, options)}
}

// MIN_VALIDITY of the published algorithm, and 2 ms for Redis's own precision.
func TestValidityIsWithoutDrift(t *testing.T) {
	if got := boxOfNothing(t).Validity(10*time.Second, 3*time.Second); got != 6898*time.Millisecond {
		t.Errorf("a TTL of 10 s, 3 s after its beginning, is valid for %v", got)
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

func TestAReplyMustFit(t *testing.T) {
	for _, fits := range []bool{true, false} {
		if one, own := ReadAs([]byte(":1\r\n"), fits) == nil, OwnAs([]byte(":1\r\n"), fits) == nil; one != fits || own != fits {
			t.Errorf("a reply that fits (%v) is read: %v and %v", fits, one, own)
		}
	}
	if VoteOf(true) != Granted || VoteOf(false) != Refused {
		t.Errorf("yes is %v, and no is %v", VoteOf(true), VoteOf(false))
	}
}
