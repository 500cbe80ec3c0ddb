package redlock

import "redlock-proxy/redlock/resp"

// What one Redis would say comes first: does the key exist? It does if a quorum
// of masters holds something under it, whatever that is, and it may if those that
// did not answer or may not vote would make one. All answers go by that.

// decideReading is the verdict on what a key holds: won by a quorum of equal
// copies, lost when the key is certainly absent. Where neither can be, all masters
// that still may answer are heard, for what comes of that goes by all copies.
func decideReading[A any](answers []answer[A], present func(A) bool, equal func(a, b A) bool) Verdict {
	need := quorum(len(answers))
	held := count(answers, present)
	_, alike := plurality(answers, present, equal)
	switch {
	case alike.granted >= need:
		return Won
	case held.granted+held.pending()+held.failed < need:
		return Lost
	case held.pending() > 0:
		return Pending
	}
	return NoQuorum
}

// chosen is the master whose copy stands for all where a quorum of them holds
// something and no quorum of copies is equal, or can be if masters that did not
// answer had one; false if it is not so. It is some client's write, as on one
// Redis.
func chosen[A any](answers []answer[A], present func(A) bool, equal func(a, b A) bool, text func(A) []byte) (master int, split bool) {
	need := quorum(len(answers))
	held := count(answers, present)
	_, alike := plurality(answers, present, equal)
	if held.granted < need || alike.granted+held.failed+held.pending() >= need {
		return 0, false
	}
	return choose(answers, present, equal, text), true
}

// choose picks among copies that differ: the largest integer where all are
// integers, for a fencing number never goes back, and otherwise one of the largest
// group of equals, of several that with the lowest member.
func choose[A any](answers []answer[A], present func(A) bool, equal func(a, b A) bool, text func(A) []byte) int {
	best, most, all := -1, 0, true
	top, largest := -1, int64(0)
	for i, a := range answers {
		if a.state != answered || !present(a.value) {
			continue
		}
		n, isInteger := resp.ParseDecimal(text(a.value))
		if all = all && isInteger; all && (top < 0 || n > largest) {
			top, largest = i, n
		}
		group := 0
		for _, b := range answers {
			if b.state == answered && present(b.value) && equal(a.value, b.value) {
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
