package effect

import (
	"time"

	"redlock-proxy/redlock/resp"
)

// Due says what key k should be on a master that was outvoted: as it was before,
// unless there is a reason to leave it. The result won is one of the winning votes,
// or nil if no vote won. With scrap, only what the run created is removed. The skew
// is the time by which the effects of one ballot may differ between two masters.
func Due(won *Result, k int, before, after Image, scrap bool, skew time.Duration) Image {
	did, wins := Compare(before, after), won.did(k)
	switch {
	case scrap && did != Created:
		return after
	case wins == Deleted && goesToo(did, before, won.Before[k], skew):
		return Missing
	case did == Deleted && wins.Wrote():
		return after
	case wins.Wrote() && counts(won.After[k], after):
		return notBehind(won.After[k], after)
	case did == Kept || did == Moved:
		return after // its holder may have moved its expiry again since
	}
	return before
}

// did tells what a winning run did to key k. It may be called on nil: no run won.
func (x *Result) did(k int) Change {
	if x == nil || x.After == nil {
		return StayedAbsent
	}
	return Compare(x.Before[k], x.After[k])
}

// counts tells whether the winners and this master differ only in what they have counted.
func counts(won, after Image) bool {
	_, all, alike := Unite(2, won, after)
	return alike && all
}

// notBehind says what a counter should be on a master where it differs from the
// winners. Undoing it would put it further behind. A counter that is ahead stays: it
// has counted another process's run that the winners are about to count.
func notBehind(won, after Image) Image {
	highest, _, _ := Unite(2, after, won)
	return Image{Dump: highest.Dump, PTTL: after.PTTL, Now: after.Now}
}

// goesToo tells whether to delete a copy that the run left here and deleted on the
// winners. Two copies must go. A counter that drifted was only counted down here, and
// would outlive its lock. A queue was left alone because the lock before it ends a
// little later on this master, and the client that was served would stay first in it.
// The copy is no vote for a later lock: the winners did not have that lock yet.
func goesToo(did Change, before, others Image, skew time.Duration) bool {
	switch did {
	case Changed:
		return true
	case Kept, Moved:
		return SameContent(before, others) && Near(before.PTTL, others.PTTL, skew.Milliseconds()+resp.ExpiryTolerance)
	}
	return false
}
