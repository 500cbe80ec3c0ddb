package redlock

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"redlock-proxy/redlock/quorum"
	"redlock-proxy/redlock/stream"
)

// A release that finds nothing on a master may have come too early there: where
// another process took the lock, its question to that master may still be on the
// way, and then the copy that it makes belongs to nobody. So a release that was
// won is sent once more, a ballot's time later.

// releaseAgain sends a release once more to the masters that said that there was
// nothing to delete. before is what creations said before the release was sent: if
// this process has since asked for the key again, it may be for an equal value.
func (l *Locker) releaseAgain(db int, d *stream.Debt, masters masterSet, before uint32) {
	if masters == 0 {
		return
	}
	time.AfterFunc(l.settings().MasterTimeout, func() {
		defer l.mend(db, d.Key) // for what comes later still, or is not sent
		if len(d.Value) < stream.ShortValue || l.creations.count(db, d.Key) != before {
			return
		}
		now := time.Now()
		for i, m := range l.masters {
			if masters.has(i) {
				m.stream(db).Deliver(d, now, true)
			}
		}
	})
}

// foundNothing are the masters that answered a release without a deletion.
func foundNothing[A any](answers []quorum.Answer[A], deleted func(A) bool) (masters masterSet) {
	for i, a := range answers {
		if a.State.Heard() && !deleted(a.Value) {
			masters |= 1 << i
		}
	}
	return masters
}

// creations counts what this process asked for that may create a lock. Keys share
// counters, so a count that did not change is certain and one that did is not.
type creations struct {
	seed   maphash.Seed
	counts [1 << 14]atomic.Uint32
}

func newCreations() *creations { return &creations{seed: maphash.MakeSeed()} }

func (c *creations) of(db int, key string) *atomic.Uint32 {
	return &c.counts[(maphash.String(c.seed, key)+uint64(db))%uint64(len(c.counts))]
}

func (c *creations) count(db int, key string) uint32 { return c.of(db, key).Load() }

// note is called in the order in which questions are put into the streams.
func (c *creations) note(db int, keys []string) {
	for _, key := range keys {
		c.of(db, key).Add(1)
	}
}
