package quorum

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"redlock-proxy/integration/datatest"
)

// The questions name a rule, and give it either numbers or votes:
//
//	acquire n=5 granted=2 refused=3 -> Lost
//	acquire (granted granted granted refused away) -> Won
//	run (grant+del held held away away) -> NoQuorum
//	lasting (a b - away away, a - - a a) -> a
//	group (a! a a b -) -> 2 a
//
// "complete" has all ballots of so many masters, as granted:refused:failed, and the verdicts acquire, agree and release.
//
// Votes are words, one for each master. A few say that there is none:
//
//	?            it may still come
//	unasked      its master was not asked
//	away         its master was asked, and may have done it
//	unable       its master answered that it cannot serve
//	unable:X     its master answered X, and an error in the same batch
//	amnesic:X    its master answered X, and may have forgotten locks
//
// X! says in an earlier copy that it changed meanwhile, and in a group that it does not count.
func TestData(t *testing.T) { datatest.Run(t, ask) }

// ask answers a question: a rule, and either numbers or votes.
func ask(t *testing.T, question string) string {
	rule, rest, _ := strings.Cut(question, " ")
	numbers, list, hasVotes := strings.Cut(rest, "(")
	n := numbersOf(t, numbers)
	votes := strings.Fields(strings.TrimSuffix(list, ")"))
	answers := answersOf(votes)
	tally := Tally{Masters: n["n"], Granted: n["granted"], Refused: n["refused"], Failed: n["failed"]}
	if hasVotes {
		tally = Count(answers, func(v string) bool { return v == grantedBy[rule] })
	}
	switch rule {
	case "complete":
		var all []string
		for _, tally := range completed(Tally{Masters: n["n"]}, n["n"]) {
			all = append(all, fmt.Sprintf("%d:%d:%d %s %s %s", tally.Granted, tally.Refused, tally.Failed, name(tally.Acquire()), name(tally.Agree()), name(tally.Release())))
		}
		return strings.Join(all, "; ")
	case "size":
		return strconv.Itoa(Size(n["n"]))
	case "intersecting":
		return strconv.Itoa(Intersecting(n["n"]))
	case "acquire":
		return name(tally.Acquire())
	case "agree":
		return name(tally.Agree())
	case "look":
		return name(tally.Look())
	case "release":
		return name(tally.Release())
	case "told":
		_, refusals := Largest(answers, func(v string) bool { return v != "deleted" }, isEqual)
		return name(tally.Release().Told(refusals))
	case "run":
		return run(answers)
	case "exists":
		return exists(answers)
	case "candidates":
		return cmp.Or(strings.Join(Candidates(answers, isPresent, isEqual), " "), "none")
	case "lasting":
		earlier, now := twice(votes)
		return cmp.Or(strings.Join(Candidates(Lasting(earlier, now, isEqual), isPresent, isEqual), " "), "none")
	case "group":
		one, tally := Largest(answers, func(v string) bool { return !isMarked(v) }, func(a, b string) bool { return unmarked(a) == unmarked(b) })
		return fmt.Sprint(tally.Granted, " ", one)
	case "attained":
		return attained(t, n["n"], votes)
	case "race":
		return race(votes)
	}
	t.Fatalf("no such rule: %s", question)
	return ""
}

// grantedBy is the vote that grants what each rule asks for.
var grantedBy = map[string]string{"acquire": "granted", "agree": "yes", "look": "yes", "release": "deleted", "told": "deleted"}

func name(v Verdict) string {
	return map[Verdict]string{Pending: "Pending", Won: "Won", Lost: "Lost", NoQuorum: "NoQuorum"}[v]
}

func numbersOf(t *testing.T, text string) map[string]int {
	numbers := map[string]int{}
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		n, err := strconv.Atoi(value)
		if err != nil || !slices.Contains([]string{"n", "granted", "refused", "failed"}, key) {
			t.Fatalf("%s is no number of masters", word)
		}
		numbers[key] = n
	}
	return numbers
}

func answersOf(votes []string) []Answer[string] {
	answers := make([]Answer[string], len(votes))
	for i, v := range votes {
		answers[i] = answerOf(v)
	}
	return answers
}

func answerOf(word string) Answer[string] {
	if value, amnesic := strings.CutPrefix(word, "amnesic:"); amnesic {
		return Answer[string]{State: Discounted, Value: value}
	}
	if value, failed := strings.CutPrefix(word, "unable:"); failed {
		return Answer[string]{State: Unable, Value: value}
	}
	states := map[string]State{"?": Awaited, "unasked": Unasked, "away": Unknown, "unable": Unable}
	if state, missing := states[word]; missing {
		return Answer[string]{State: state}
	}
	return Answer[string]{State: Answered, Value: word}
}

// run is decided by equal votes, whatever they say.
func run(answers []Answer[string]) string {
	most, tally := Largest(answers, func(string) bool { return true }, isEqual)
	if v := tally.Agree(); v != Won {
		return name(v)
	}
	return "Won " + most
}

// "-" is no copy.
func isPresent(copy string) bool { return copy != "" && copy != "-" }

func isEqual(a, b string) bool { return a == b }

func exists(answers []Answer[string]) string {
	v := Exists(answers, isPresent, isEqual)
	if v == Won {
		copy, _ := Largest(answers, isPresent, isEqual)
		return "Won " + copy
	}
	copy, split := Split(answers, isPresent, isEqual, func(a, b string) (string, bool) {
		m, err1 := strconv.ParseInt(a, 10, 64)
		n, err2 := strconv.ParseInt(b, 10, 64)
		if m < n {
			a = b
		}
		return a, err1 == nil && err2 == nil
	})
	if !split {
		return name(v)
	}
	return name(v) + " split " + copy
}

// twice returns the earlier answers and those of now.
func twice(words []string) (earlier, now []Answer[string]) {
	half := len(words) / 2
	words[half-1] = strings.TrimSuffix(words[half-1], ",")
	return answersOf(words[:half]), answersOf(words[half:])
}

func unmarked(vote string) string { return strings.TrimSuffix(vote, "!") }

func isMarked(vote string) bool { return vote != unmarked(vote) }

func attained(t *testing.T, masters int, words []string) string {
	var numbers []int64
	for _, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	n, ok := Attained(masters, numbers)
	if !ok {
		return "nothing"
	}
	return strconv.FormatInt(n, 10)
}

// race is what comes of several clients' acquires of one lock. A vote names the
// client that its master granted the lock to; it has refused the others.
func race(votes []string) string {
	var clients, came []string
	for _, v := range votes {
		if a := answerOf(v); a.State == Answered && v != "nobody" && !slices.Contains(clients, v) {
			clients = append(clients, v)
		}
	}
	slices.Sort(clients)
	for _, client := range clients {
		var answers []Answer[bool]
		for _, v := range votes {
			a := answerOf(v)
			answers = append(answers, Answer[bool]{State: a.State, Value: a.Value == client})
		}
		came = append(came, fmt.Sprintf("%s %s", client, name(Count(answers, func(granted bool) bool { return granted }).Acquire())))
	}
	return strings.Join(came, ", ")
}
