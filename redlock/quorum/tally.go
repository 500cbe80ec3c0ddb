package quorum

// Size is the least number of masters of which two groups always share one.
func Size(masters int) int { return masters/2 + 1 }

// Intersecting is the least number of masters of which one is in every quorum.
func Intersecting(masters int) int { return masters - Size(masters) + 1 }

// A Tally counts the votes of one ballot. Votes not counted yet are pending.
type Tally struct {
	Masters int
	Granted int // for votes that carry a value: those of the largest agreeing group
	Refused int // every other answer
	Failed  int // masters that will not answer this ballot
}

// Answered is how many masters have voted.
func (t Tally) Answered() int { return t.Granted + t.Refused }

// Pending is how many masters may still vote.
func (t Tally) Pending() int { return t.Masters - t.Granted - t.Refused - t.Failed }

// Possible tells whether those that granted could be a quorum, together with all
// masters whose votes are missing.
func (t Tally) Possible() bool { return t.Masters-t.Refused >= Size(t.Masters) }

// Acquire is won by a quorum of grants. It is lost once that is out of reach
// and a quorum has answered: what the others granted is taken back, so a
// missing vote cannot make a holder of this client any more.
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

// Agree is for questions that take nothing back: what a quorum says is so,
// and "no" is said only if no completion of the missing answers, of failed
// masters included, could still give a quorum.
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

// Look is Agree for a ballot that a release follows: short of certainty,
// every master that still may answer is heard, for the release goes by what a
// quorum could hold.
func (t Tally) Look() Verdict {
	if v := t.Agree(); v != NoQuorum || t.Pending() == 0 {
		return v
	}
	return Pending
}

// Release is won with at least one deletion and a quorum of answers, if the
// deletions and the masters that did not answer could together have been the
// lock's quorum: the lock was this client's, and no quorum holds it now.
func (t Tally) Release() Verdict {
	need := Size(t.Masters)
	switch {
	case !t.Possible():
		return Lost
	case t.Granted > 0 && t.Answered() >= need && t.Granted+t.Failed >= need:
		return Won
	case t.Pending() > 0 && (t.Answered()+t.Pending() >= need || t.Masters-t.Refused-t.Pending() < need):
		return Pending
	}
	return NoQuorum
}

// Told is a verdict whose answer the client reads as a master gave it: it is Lost
// only where a quorum refused alike, which refusals tallies.
func (v Verdict) Told(refusals Tally) Verdict {
	switch {
	case v != Lost || refusals.Granted >= Size(refusals.Masters):
		return v
	case refusals.Pending() > 0:
		return Pending
	}
	return NoQuorum
}
