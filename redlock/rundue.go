package redlock

import "time"

// due is what key k is to be on a master whose vote was not among the winning
// ones: as it was before, unless there is a reason to leave it. Scrap: what the run
// did not create is left.
func due(won *examined, k int, before, after image, scrap bool, skew time.Duration) image {
	did, wins := change(before, after), won.effect(k)
	switch {
	case scrap && did != keyCreated:
		return after
	case wins == keyDeleted && goesToo(did, before, won.before[k], skew):
		return absentImage
	case did == keyDeleted && wins.wrote():
		return after
	case wins.wrote() && counted(won.after[k], after):
		return notBehind(won.after[k], after)
	case did == keyKept || did == keyMoved:
		return after // its expiry may have been moved again since, by who holds the lock
	}
	return before
}

// effect is what a run that was won did to key k. Nil: it was not won.
func (x *examined) effect(k int) effect {
	if x == nil || x.after == nil {
		return keyStayedAbsent
	}
	return change(x.before[k], x.after[k])
}

// counted tells whether a run has left an integer both on those that won and on
// this master.
func counted(won, after image) bool {
	_, there := won.number()
	_, here := after.number()
	return there && here
}

// notBehind is what a counter is to be on a master where it came to something else
// than on the others. Put back, it would be further behind; one that is ahead has
// what the others are about to have, from another process.
func notBehind(won, after image) image {
	most, _ := won.number()
	if n, _ := after.number(); n >= most {
		return after
	}
	return image{dump: won.dump, pttl: after.pttl, now: after.now}
}

// goesToo tells whether a master's copy goes with those that the others deleted,
// where the run left one. A counter that drifted is only counted down where the
// others release, and the copy would outlive its lock. A queue stays as it was
// where the lock before it ends a little later, and who was served would stay
// first in it. That cannot be a later lock's vote: the quorum that deleted did
// not have it then.
func goesToo(did effect, before, others image, skew time.Duration) bool {
	switch did {
	case keyChanged:
		return true
	case keyKept, keyMoved:
		return sameContent(before, others) && near(before.pttl, others.pttl, skew.Milliseconds()+expiryTolerance)
	}
	return false
}
