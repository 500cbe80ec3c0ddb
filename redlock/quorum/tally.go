package quorum

// Size is the quorum: any two groups of so many masters share at least one.
func Size(masters int) int { return masters/2 + 1 }

// Intersecting is the least number of masters that share one with every quorum.
func Intersecting(masters int) int { return masters - Size(masters) + 1 }

// A Tally counts the votes of one ballot. Votes not counted yet are pending.
type Tally struct {
	Masters int
	Granted int // if votes carry values: the size of the largest group of equal ones
	Refused int // every other answer
	Failed  int // masters that will not answer this ballot
}

// Answered is the number of masters that have voted.
func (t Tally) Answered() int { return t.Granted + t.Refused }

// Pending is the number of masters that may still vote.
func (t Tally) Pending() int { return t.Masters - t.Granted - t.Refused - t.Failed }

// Possible tells whether the masters that granted could be a quorum together with all
// masters whose votes are missing.
func (t Tally) Possible() bool { return t.Masters-t.Refused >= Size(t.Masters) }

// Acquire is won by a quorum of grants. It is lost once that is out of reach and a
// quorum has answered. The grants of the others are undone, so a missing vote can no
// longer make this client a holder.
func (t Tally) Acquire() Verdict {
	need := Size(t.Masters)
	switch {
	case t.Granted >= need:
		return Won
	case t.Granted+t.Pending() >= need:
		return Pending
	case t.Answered() >= need:
		return Lost
	case t.Answered()+t.Pending() >= need:
		return Pending
	}
	return NoQuorum
}

// Agree is for questions whose effects are not undone. It is won if a quorum says yes.
// It is lost only if no completion of the missing answers could give a quorum, and the
// answers of failed masters count as missing.
func (t Tally) Agree() Verdict {
	need := Size(t.Masters)
	switch {
	case t.Granted >= need:
		return Won
	case !t.Possible():
		return Lost
	case t.Granted+t.Pending() >= need || t.Granted+t.Failed < need:
		return Pending
	}
	return NoQuorum
}

// Look is Agree for a ballot that a release follows. While the verdict is uncertain it
// waits for every master that may still answer, because the release depends on what a
// quorum could hold.
func (t Tally) Look() Verdict {
	if v := t.Agree(); v != NoQuorum || t.Pending() == 0 {
		return v
	}
	return Pending
}

// Release is won by a quorum of answers, if the deletions and the masters that did not
// answer could together have been the lock's quorum. Then at least one of the answers is a
// deletion, because two quorums share a master. So the lock was this client's, and no quorum
// holds it now.
func (t Tally) Release() Verdict {
	need := Size(t.Masters)
	switch {
	case !t.Possible():
		return Lost
	case t.Answered() >= need && t.Granted+t.Failed >= need:
		return Won
	case t.Answered()+t.Pending() >= need || t.Granted+t.Failed < need:
		return Pending
	}
	return NoQuorum
}

// Told is v for a client that reads a master's own refusal. It is Lost only if a
// quorum refused with the same reply. The tally of equal replies is refusals.
func (v Verdict) Told(refusals Tally) Verdict {
	switch {
	case v != Lost || refusals.Granted >= Size(refusals.Masters):
		return v
	case refusals.Pending() > 0:
		return Pending
	}
	return NoQuorum
}
