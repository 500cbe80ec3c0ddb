package quorum

// What one Redis would say comes first: does the key exist? It does if a quorum
// of masters holds something under it, whatever that is, and it may if those that
// did not answer or may not vote would make one. All answers go by that.

// Exists is the verdict on what a key holds: won by a quorum of equal
// copies, lost when the key is certainly absent. Where neither can be, all masters
// that still may answer are heard, for what comes of that goes by all copies.
func Exists[A any](answers []Answer[A], present func(A) bool, equal func(a, b A) bool) Verdict {
	need := Size(len(answers))
	held := Count(answers, present)
	_, alike := Largest(answers, present, equal)
	switch {
	case alike.Granted >= need:
		return Won
	case !held.Possible():
		return Lost
	case held.Pending() > 0:
		return Pending
	}
	return NoQuorum
}

// Split tells whether a quorum of masters holds something and no quorum of copies
// is equal, or can be if masters that did not answer had one. Then the copy of the
// returned master stands for all: it is some client's write, as on one Redis.
func Split[A any](answers []Answer[A], present func(A) bool, equal func(a, b A) bool, number func(A) (int64, bool)) (master int, split bool) {
	need := Size(len(answers))
	held := Count(answers, present)
	_, alike := Largest(answers, present, equal)
	if held.Granted < need || alike.Granted+held.Failed+held.Pending() >= need {
		return 0, false
	}
	return Choose(answers, present, equal, number), true
}

// Choose picks among copies that differ: the largest integer where all are
// integers, for a fencing number never goes back, and otherwise one of the largest
// group of equals, of several that with the lowest member.
func Choose[A any](answers []Answer[A], present func(A) bool, equal func(a, b A) bool, number func(A) (int64, bool)) (master int) {
	best, most, all := -1, 0, true
	top, largest := -1, int64(0)
	for i, a := range answers {
		if a.State != Answered || !present(a.Value) {
			continue
		}
		n, isInteger := number(a.Value)
		if all = all && isInteger; all && (top < 0 || n > largest) {
			top, largest = i, n
		}
		group := 0
		for _, b := range answers {
			if b.State == Answered && present(b.Value) && equal(a.Value, b.Value) {
				group++
			}
		}
		if group > most {
			best, most = i, group
		}
	}
	if all {
		return top
	}
	return best
}
