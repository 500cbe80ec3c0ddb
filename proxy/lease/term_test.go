package lease

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"redlock-proxy/integration/datatest"
	"redlock-proxy/redlock"
)

var limits = Limits{MasterTimeout: 50 * time.Millisecond, ClockDrift: 0.01}

// TestTerms asks the questions in testdata/terms.txt. Each says what became of a lock, and when, since it was taken:
//
//	taken 9s, renewed to 9s from 3s, now 4s
//
// The answer says what a renewal found, what is due now by the rule, and by when all copies of the lock end.
func TestTerms(t *testing.T) {
	datatest.Run(t, func(t *testing.T, question string) string {
		start := time.Now()
		q := termQuestion{rule: Rule{Renew: time.Minute}, start: start, limits: limits}
		for part := range strings.SplitSeq(question, ", ") {
			if !q.hear(strings.Fields(part)) {
				t.Fatalf("unknown: %q", part)
			}
		}
		return strings.Join(q.answers, "; ")
	})
}

type termQuestion struct {
	start   time.Time
	term    term
	rule    Rule
	limits  Limits
	step    time.Duration // of the wall clock
	answers []string
}

var (
	stepNames    = [...]string{wait: "wait", renew: "renew", lose: "lose", forget: "forget"}
	findingNames = [...]string{renewed: "renewed", ended: "ended", undecided: "undecided"}
)

func (q *termQuestion) hear(w []string) bool {
	at := func(i int) time.Time { return q.start.Add(datatest.Duration(w[i])) }
	found := func(o redlock.Outcome, to time.Duration, now time.Time) {
		q.answers = append(q.answers, findingNames[q.term.answered(o, to, now)])
	}
	switch w[0] {
	case "taken": // taken 9s
		q.term = newTerm(datatest.Duration(w[1]), q.start, limits)
	case "asked": // and the masters have not answered
		q.term.pending = true
	case "renewed": // renewed to 9s from 3s
		found(redlock.Outcome{Verdict: redlock.Won, Since: at(4)}, datatest.Duration(w[2]), at(4))
	case "undecided": // undecided at 4s
		found(redlock.Outcome{Verdict: redlock.NoQuorum}, q.term.ttl, at(2))
	case "refused": // refused at 4s
		found(redlock.Outcome{Verdict: redlock.Lost}, q.term.ttl, at(2))
	case "minority": // minority at 4s: only a few masters have it
		found(redlock.Outcome{Verdict: redlock.Lost, Number: 2}, q.term.ttl, at(2))
	case "prolonged": // prolonged 30s at 1s
		q.term.prolonged(datatest.Duration(w[1]), at(3), limits)
	case "reentered": // reentered 4s at 5s
		q.term.reentered(datatest.Duration(w[1]), at(3), limits)
	case "attempted": // attempted 20s at 1s: to prolong it
		q.term.attempted(datatest.Duration(w[1]), at(3))
	case "rule": // rule release 10s: on_disconnect and renew
		q.rule = Rule{Release: w[1] == "release"}
		if last := len(w) - 1; w[last] != "release" && w[last] != "none" {
			q.rule.Renew = datatest.Duration(w[last])
		}
	case "timeout": // timeout 2s: of masters, since a reload
		q.limits.MasterTimeout = datatest.Duration(w[1])
	case "clock": // clock -1h: the wall clock was stepped
		q.step = datatest.Duration(w[1])
	case "now":
		now := stepped(at(1), q.step)
		act, in := q.term.next(now, q.rule, q.limits)
		q.answers = append(q.answers, stepNames[act])
		if act == wait || in != 0 {
			q.answers[len(q.answers)-1] += " " + short(in)
		}
		ends := "never ends"
		if end := q.term.ends(now); !end.IsZero() {
			ends = "ends by " + short(end.Sub(q.start))
		}
		q.answers = append(q.answers, fmt.Sprintf("%s from %s", short(q.term.ttl), short(q.term.since.Sub(q.start))), ends)
	default:
		return false
	}
	return true
}

// stepped returns a time read after the wall clock was stepped. Its monotonic part stays.
func stepped(t time.Time, by time.Duration) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t)) // the first field: a flag, 33 bits of seconds, 30 of nanoseconds
	*wall += uint64(by/time.Second) << 30
	return t
}

func TestAWallClockCanBeStepped(t *testing.T) {
	now := time.Now()
	if later := stepped(now, time.Hour); later.Sub(now) != 0 || later.Round(0).Sub(now.Round(0)) != time.Hour {
		t.Fatal("times have another form now")
	}
}
