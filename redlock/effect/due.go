package effect

import "time"

// Due is what key k is to be on a master whose vote was not among the winning
// ones, or where the run was not won, which is a nil won: as it was before, unless
// there is a reason to leave it. Scrap leaves all that the run did not create. The
// skew is by how much one ballot's effects may lie apart on two masters.
func Due(won *Result, k int, before, after Image, scrap bool, skew time.Duration) Image {
	did, wins := Compare(before, after), won.did(k)
	switch {
	case scrap && did != Created:
		return after
	case wins == Deleted && goesToo(did, before, won.Before[k], skew):
		return Missing
	case did == Deleted && wins.Wrote():
		return after
	case wins.Wrote() && counted(won.After[k], after):
		return notBehind(won.After[k], after)
	case did == Kept || did == Moved:
		return after // its expiry may have been moved again since, by who holds the lock
	}
	return before
}

// did is what a run that was won did to key k. Nil: it was not won.
func (x *Result) did(k int) Change {
	if x == nil || x.After == nil {
		return StayedAbsent
	}
	return Compare(x.Before[k], x.After[k])
}

// counted tells whether a run has left an integer both on those that won and on
// this master.
func counted(won, after Image) bool {
	_, there := won.Number()
	_, here := after.Number()
	return there && here
}

// notBehind is what a counter is to be on a master where it came to something else
// than on the others. Put back, it would be further behind; one that is ahead has
// what the others are about to have, from another process.
func notBehind(won, after Image) Image {
	most, _ := won.Number()
	if n, _ := after.Number(); n >= most {
		return after
	}
	return Image{Dump: won.Dump, PTTL: after.PTTL, Now: after.Now}
}

// goesToo tells whether a master's copy goes with those that the others deleted,
// where the run left one. A counter that drifted is only counted down where the
// others release, and the copy would outlive its lock. A queue stays as it was
// where the lock before it ends a little later, and who was served would stay
// first in it. That cannot be a later lock's vote: the quorum that deleted did
// not have it then.
func goesToo(did Change, before, others Image, skew time.Duration) bool {
	switch did {
	case Changed:
		return true
	case Kept, Moved:
		return SameContent(before, others) && Near(before.PTTL, others.PTTL, skew.Milliseconds()+Tolerance)
	}
	return false
}
