package quorum

import "testing"

// A verdict on an incomplete ballot is certain if and only if every completion has it. The verdicts on complete ones are
// in testdata/tallies.txt.
func TestTallyAgainstEveryCompletion(t *testing.T) {
	for name, rule := range map[string]func(Tally) Verdict{"acquire": Tally.Acquire, "agree": Tally.Agree, "release": Tally.Release} {
		for masters := 1; masters <= 7; masters++ {
			for missing := range masters + 1 {
				for _, vote := range completed(Tally{Masters: masters}, masters-missing) {
					want := Pending
					for i, complete := range completed(vote, missing) {
						if v := rule(complete); i == 0 || v == want {
							want = v
						} else {
							want = Pending
							break
						}
					}
					if got := rule(vote); got != want {
						t.Errorf("%s %+v: %v, every completion says %v", name, vote, got, want)
					}
				}
			}
		}
	}
}

// completed returns the tallies that become of one when so many more masters have voted or failed.
func completed(t Tally, missing int) (all []Tally) {
	for granted := range missing + 1 {
		for refused := range missing - granted + 1 {
			all = append(all, Tally{t.Masters, t.Granted + granted, t.Refused + refused, t.Failed + missing - granted - refused})
		}
	}
	return all
}

func TestTwoQuorumsShareAMaster(t *testing.T) {
	for masters := 1; masters <= 9; masters++ {
		if q := Size(masters); 2*q <= masters || 2*(q-1) > masters {
			t.Errorf("quorum of %d masters is %d", masters, q)
		}
	}
}
