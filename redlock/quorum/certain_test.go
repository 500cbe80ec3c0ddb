package quorum

import (
	"slices"
	"strings"
	"testing"
)

// A master grants a lock to one client at most, so that one client at most wins,
// whatever the masters do and whoever else is heard.
func TestOneClientWins(t *testing.T) {
	for masters := 1; masters <= 5; masters++ {
		eachVote(masters, []string{"a", "b", "nobody", "away", "?", "amnesic:a"}, func(votes []string) {
			if came := race(votes); strings.Count(came, "Won") > 1 {
				t.Errorf("%v: %s", votes, came)
			}
		})
	}
}

// A verdict stays what it is, whatever the missing votes are, and there is one when
// no vote is missing.
func TestVerdictsAreCertain(t *testing.T) {
	rules := map[string]func([]Answer[string]) Verdict{
		"exists": func(answers []Answer[string]) Verdict { return Exists(answers, isPresent, isEqual) },
		"look": func(answers []Answer[string]) Verdict {
			_, t := Largest(answers, isPresent, isEqual)
			return t.Look()
		},
		"run": func(answers []Answer[string]) Verdict {
			_, t := Largest(answers, func(string) bool { return true }, isEqual)
			return t.Agree()
		},
	}
	said := []string{"a", "b", "-", "away", "amnesic:a"}
	for name, rule := range rules {
		for masters := 1; masters <= 5; masters++ {
			eachVote(masters, append(said, "?"), func(votes []string) {
				verdict := rule(answersOf(votes))
				missing := slices.Index(votes, "?")
				if missing < 0 && verdict == Pending {
					t.Errorf("%s %v waits for nobody", name, votes)
				}
				if missing < 0 || verdict == Pending {
					return
				}
				for _, vote := range said {
					later := slices.Clone(votes)
					later[missing] = vote
					if v := rule(answersOf(later)); v != verdict {
						t.Errorf("%s %v is %v, and %v is %v", name, votes, verdict, later, v)
					}
				}
			})
		}
	}
}

// eachVote calls visit with all that so many masters can say, in one slice.
func eachVote(masters int, words []string, visit func(votes []string)) {
	votes := make([]string, masters)
	var fill func(i int)
	fill = func(i int) {
		if i == masters {
			visit(votes)
			return
		}
		for _, w := range words {
			votes[i] = w
			fill(i + 1)
		}
	}
	fill(0)
}
