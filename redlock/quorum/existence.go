package quorum

// Does the key exist? A single Redis would know, so this comes first. The key exists
// if a quorum of masters holds anything under it. It may exist if the masters that did
// not answer or may not vote could complete a quorum. Every rule here follows from that.

// Exists is the verdict on what a key holds. It is won by a quorum of equal copies and
// lost when the key is certainly absent. If neither can happen any more, it waits for
// all masters that may still answer, because Split needs all copies.
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

// Split tells whether a quorum of masters holds the key, but no quorum of equal copies
// exists or could exist with the masters that did not answer. The returned copy then
// stands for all. It is one client's write, as on a single Redis. If all copies are counters it is the
// highest, because a fencing number must never go back. Otherwise it is a copy of
// the largest group of equals, and of groups of one size of the one that comes first.
func Split[A any](answers []Answer[A], present func(A) bool, equal func(a, b A) bool, higher func(a, b A) (A, bool)) (copy A, split bool) {
	need := Size(len(answers))
	held := Count(answers, present)
	best, alike := Largest(answers, present, equal)
	if held.Granted < need || alike.Granted+held.Failed+held.Pending() >= need {
		return copy, false
	}
	top := best
	for _, a := range answers {
		if a.State != Answered || !present(a.Value) {
			continue
		}
		var counts bool
		if top, counts = higher(top, a.Value); !counts {
			return best, true
		}
	}
	return top, true
}
