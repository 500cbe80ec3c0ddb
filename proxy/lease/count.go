package lease

import (
	"sync/atomic"

	"redlock-proxy/proxy/events"
)

// A refusal says why a lock is not renewed. It was taken all the same.
type refusal uint8

const (
	refusedNumber refusal = iota
	refusedSize
	refusedType
	refusedTTL
	refusedDrain
	notDue // it is no refusal: no rule asks for a lease, or a later holder has one
)

var refusalNames = [...]string{"too_many", "too_large", "not_a_string", "ttl_too_short", "draining"}

var refusalTexts = [...]string{
	refusedNumber: "lock taken but not renewed: too many such locks; spread them over more connections (1,000 each) and proxies (50,000 each)",
	refusedSize:   "lock taken but not renewed: its key and value exceed 1 KiB; shorten them",
	refusedType:   "lock taken but not renewed: it is neither a string nor a hash that names one holder; its client must renew it",
	refusedTTL:    "lock taken but not renewed: its TTL is less than six times master_timeout; make the TTL longer",
}

// The results of the release of a lock whose connection has ended.
const (
	releaseDone      = iota
	releaseAbsent    // it had ended
	releaseUndecided // too few masters answered; those that missed it get it later, or the TTL ends the lock
	releaseShort     // its value may be shared or used again, so the lock keeps its TTL
	releaseResults
)

var (
	renewalNames = [...]string{renewed: "renewed", ended: "ended", undecided: "undecided"}
	releaseNames = [...]string{"released", "absent", "undecided", "short_value"}
)

// counters count what happens to leases.
type counters struct {
	renewals [len(renewalNames)]atomic.Int64
	releases [releaseResults]atomic.Int64
	refusals [len(refusalNames)]atomic.Int64
	lost     atomic.Int64
}

// Counts returns the present numbers, for metrics.
func (k *Keeper) Counts() events.LeaseCounts {
	return events.LeaseCounts{
		Held: k.held.Load(), Lost: k.lost.Load(),
		Renewals: named(renewalNames[:], k.renewals[:]),
		Releases: named(releaseNames[:], k.releases[:]),
		Refused:  named(refusalNames[:], k.refusals[:]),
	}
}

func named(names []string, numbers []atomic.Int64) map[string]int64 {
	all := make(map[string]int64, len(names))
	for i, name := range names {
		all[name] = numbers[i].Load()
	}
	return all
}

// refuse counts a lock without a lease, and logs the first of each kind.
func (k *Keeper) refuse(why refusal) {
	if k.refusals[why].Add(1) == 1 && why != refusedDrain {
		k.Log.Warn(refusalTexts[why])
	}
}
