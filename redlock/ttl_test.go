package redlock

import (
	"strings"
	"testing"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/quorum"
)

// The answers of three or five masters: a time in seconds, "inf" for a copy without TTL, "-" for no copy, "?" for
// an answer that is still to come, "away" for one that will not come.
func TestTheTimeOfAKeyDoesNotDependOnWhoAnswersFirst(t *testing.T) {
	for answers, want := range map[string]Verdict{
		"100 99 ?":           Won,
		"inf inf ?":          Won,
		"inf 100 ?":          Pending, // inf, if the third says so, too
		"inf 100 inf":        Won,
		"inf 100 away":       Won,
		"inf - ?":            Pending,
		"inf - -":            Lost,
		"inf inf 100 ? ?":    Pending,
		"inf 100 99 - ?":     Pending,
		"inf 100 99 - away":  Won,
		"- - - ? ?":          Lost,
		"inf away away ? ?":  Pending,
		"100 away away 99 ?": Pending,
	} {
		var of []quorum.Answer[expiry]
		for word := range strings.FieldsSeq(answers) {
			a := quorum.Answer[expiry]{State: quorum.Answered}
			switch word {
			case "?":
				a.State = quorum.Awaited
			case "away":
				a.State = quorum.Unknown
			case "inf":
				a.Value.n = effect.NoExpiry
			case "-":
				a.Value.n = effect.NoKey
			default:
				a.Value.n = 100
			}
			of = append(of, a)
		}
		if got := decideExpiry(of); got != want {
			t.Errorf("%s: %v, want %v", answers, got, want)
		}
	}
}
