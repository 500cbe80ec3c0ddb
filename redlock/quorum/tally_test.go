package quorum

import "testing"

// A second opinion that only knows complete ballots: a verdict on an
// incomplete one is certain if and only if every completion gives it.

func acquireOpinion(masters, granted, refused, failed int) Verdict {
	need := masters/2 + 1
	switch {
	case granted >= need:
		return Won
	case granted+refused >= need:
		return Lost
	}
	return NoQuorum
}

func agreeOpinion(masters, granted, refused, failed int) Verdict {
	need := masters/2 + 1
	if granted >= need {
		return Won
	}
	for couldGrant := 0; couldGrant <= failed; couldGrant++ {
		if granted+couldGrant >= need {
			return NoQuorum
		}
	}
	return Lost
}

func releaseOpinion(masters, granted, refused, failed int) Verdict {
	need := masters/2 + 1
	for couldDelete := 0; couldDelete <= failed; couldDelete++ {
		if granted+couldDelete >= need {
			if granted > 0 && granted+refused >= need {
				return Won
			}
			return NoQuorum
		}
	}
	return Lost
}

func TestTallyAgainstEveryCompletion(t *testing.T) {
	rules := []struct {
		name    string
		verdict func(Tally) Verdict
		opinion func(masters, granted, refused, failed int) Verdict
	}{
		{"acquire", Tally.Acquire, acquireOpinion},
		{"agree", Tally.Agree, agreeOpinion},
		{"release", Tally.Release, releaseOpinion},
	}
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			vectors := 0
			for masters := 1; masters <= 7; masters++ {
				for granted := 0; granted <= masters; granted++ {
					for refused := 0; granted+refused <= masters; refused++ {
						for failed := 0; granted+refused+failed <= masters; failed++ {
							vote := Tally{masters, granted, refused, failed}
							want := certain(vote, rule.opinion)
							if got := rule.verdict(vote); got != want {
								t.Errorf("%+v: %v, every completion says %v", vote, got, want)
							}
							vectors++
						}
					}
				}
			}
			if vectors < 300 {
				t.Fatalf("only %d vectors were tried", vectors)
			}
		})
	}
}

// certain is the verdict that all completions of the ballot share, or Pending.
func certain(v Tally, opinion func(masters, granted, refused, failed int) Verdict) Verdict {
	verdict := Pending
	missing := v.Pending()
	for granted := 0; granted <= missing; granted++ {
		for refused := 0; granted+refused <= missing; refused++ {
			o := opinion(v.Masters, v.Granted+granted, v.Refused+refused, v.Failed+missing-granted-refused)
			if verdict != Pending && o != verdict {
				return Pending
			}
			verdict = o
		}
	}
	return verdict
}

func TestTwoQuorumsShareAMaster(t *testing.T) {
	for masters := 1; masters <= 9; masters++ {
		if q := Size(masters); 2*q <= masters || 2*(q-1) > masters {
			t.Errorf("quorum of %d masters is %d", masters, q)
		}
	}
}
