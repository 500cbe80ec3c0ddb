package redlock

// The tally: votes in, verdict out. No time, no network, no goroutine, so that
// every vector of votes can be tried.

// quorum is the least number of masters of which two groups always share one.
func quorum(masters int) int { return masters/2 + 1 }

// tally counts the votes of one ballot. Votes not counted yet are pending.
type tally struct {
	masters int
	granted int // for votes that carry a value: those of the largest agreeing group
	refused int // every other answer
	failed  int // masters that will not answer this ballot
}

func (t tally) answered() int { return t.granted + t.refused }
func (t tally) pending() int  { return t.masters - t.granted - t.refused - t.failed }

// acquire is won by a quorum of grants. It is lost once that is out of reach
// and a quorum has answered: what the others granted is taken back, so a
// missing vote cannot make a holder of this client any more.
func (t tally) acquire() Verdict {
	need := quorum(t.masters)
	switch {
	case t.granted >= need:
		return Won
	case t.granted+t.pending() >= need:
		return Pending
	case t.answered() >= need:
		return Lost
	case t.answered()+t.pending() >= need:
		return Pending
	}
	return NoQuorum
}

// agreement is for questions that take nothing back: what a quorum says is so,
// and "no" is said only if no completion of the missing answers, of failed
// masters included, could still give a quorum.
func (t tally) agreement() Verdict {
	need := quorum(t.masters)
	switch {
	case t.granted >= need:
		return Won
	case t.granted+t.pending()+t.failed < need:
		return Lost
	case t.granted+t.pending() >= need || t.granted+t.failed < need:
		return Pending
	}
	return NoQuorum
}

// release is won with at least one deletion and a quorum of answers, if the
// deletions and the masters that did not answer could together have been the
// lock's quorum: the lock was this client's, and no quorum holds it now.
func (t tally) release() Verdict {
	need := quorum(t.masters)
	switch {
	case t.masters-t.refused < need:
		return Lost
	case t.granted > 0 && t.answered() >= need && t.granted+t.failed >= need:
		return Won
	case t.pending() > 0 && (t.answered()+t.pending() >= need || t.masters-t.refused-t.pending() < need):
		return Pending
	}
	return NoQuorum
}
