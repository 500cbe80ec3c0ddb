package quorum

import (
	"math"
	"slices"
	"time"
)

// An Answer is one master's part in a ballot.
type Answer[A any] struct {
	State State
	Value A
	// LongestTTL is the longest TTL in the master's marker, read in the same batch.
	LongestTTL time.Duration
}

// A State says whether a master answered, and whether its answer is a vote.
type State uint8

const (
	Awaited    State = iota // it may still answer
	Unasked                 // it was not asked, or certainly did not receive the question
	Unknown                 // it will not answer, and may have executed the question
	Unable                  // it answered that it cannot serve
	Discounted              // it answered, but may have forgotten locks or is not in the set
	Answered                // its answer is a vote
)

// Failed tells whether there is no vote and none will come.
func (s State) Failed() bool {
	return s == Unasked || s == Unknown || s == Unable || s == Discounted
}

// Heard tells whether the value is known. It need not be a vote.
func (s State) Heard() bool { return s == Answered || s == Discounted }

// Count tallies answers. Those for which grants is true count as granted.
func Count[A any](answers []Answer[A], grants func(A) bool) Tally {
	t := Tally{Masters: len(answers)}
	for _, a := range answers {
		switch {
		case a.State.Failed():
			t.Failed++
		case a.State == Answered && grants(a.Value):
			t.Granted++
		case a.State == Answered:
			t.Refused++
		}
	}
	return t
}

// Complete is won when no answer is pending, whatever the answers are.
func Complete[A any](answers []Answer[A], _ time.Duration) Verdict {
	for _, a := range answers {
		if a.State == Awaited {
			return Pending
		}
	}
	return Won
}

// Largest finds the largest group of equal answers among those for which counts is
// true, and tallies it as granted. It returns one of the group, or a zero value if
// there is none.
func Largest[A any](answers []Answer[A], counts func(A) bool, equal func(a, b A) bool) (A, Tally) {
	var best A
	most := 0
	for _, a := range answers {
		if a.State != Answered || !counts(a.Value) {
			continue
		}
		n := 0
		for _, other := range answers {
			if other.State == Answered && counts(other.Value) && equal(a.Value, other.Value) {
				n++
			}
		}
		if n > most {
			best, most = a.Value, n
		}
	}
	t := Count(answers, func(A) bool { return false })
	t.Granted, t.Refused = most, t.Refused-most
	return best, t
}

// Candidates are the different values that a quorum holds, or could hold if the
// masters without a vote held them too. The most frequent comes first.
func Candidates[A any](answers []Answer[A], present func(A) bool, equal func(a, b A) bool) []A {
	first, _ := Largest(answers, present, equal)
	values := []A{first}
	for _, a := range answers {
		if a.State.Heard() && !slices.ContainsFunc(values, func(v A) bool { return equal(v, a.Value) }) {
			values = append(values, a.Value)
		}
	}
	return slices.DeleteFunc(values, func(v A) bool {
		return !present(v) || !Count(answers, func(a A) bool { return present(a) && equal(a, v) }).Possible()
	})
}

// Lasting returns the answers of now without the copies that came after the earlier
// answers. Nobody knows what a master that did not answer earlier had then, so its copy is
// left out, too.
func Lasting[A any](earlier, now []Answer[A], equal func(a, b A) bool) []Answer[A] {
	lasting := slices.Clone(now)
	for i, a := range now {
		if a.State.Heard() && !(earlier[i].State.Heard() && equal(earlier[i].Value, a.Value)) {
			var none A
			lasting[i].Value = none
		}
	}
	return lasting
}

// Attained is the largest number that a quorum of masters has reached. It returns
// false if fewer than a quorum gave a number. It sorts the numbers.
func Attained(masters int, numbers []int64) (n int64, ok bool) {
	need := Size(masters)
	if len(numbers) < need {
		return 0, false
	}
	slices.Sort(numbers)
	return numbers[len(numbers)-need], true
}

// AttainedTTL is Attained for the times that are left of copies. -1 is endless. It changes left.
func AttainedTTL(masters int, left []int64) (n int64, ok bool) {
	for i := range left {
		if left[i] == -1 {
			left[i] = math.MaxInt64
		}
	}
	if n, ok = Attained(masters, left); n == math.MaxInt64 {
		n = -1
	}
	return n, ok
}
