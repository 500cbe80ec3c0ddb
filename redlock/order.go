package redlock

import (
	"hash/maphash"
	"sync"
)

// order makes the ballots on one key stand in the same order on every stream.
// Otherwise a release and an acquire that come at the same moment could be
// queued this way round on one master and that way round on another, and a
// release by a constant value would delete a vote that was just counted. It is
// held while a question is put into the streams' buffers, and nothing waits.
type order struct {
	seed   maphash.Seed
	shards [64]sync.Mutex
}

func newOrder() *order { return &order{seed: maphash.MakeSeed()} }

// lock returns what to unlock. Several keys are locked from the lowest shard up.
func (o *order) lock(db int, keys []string) (shards uint64) {
	for _, key := range keys {
		shards |= 1 << ((maphash.String(o.seed, key) + uint64(db)) % uint64(len(o.shards)))
	}
	o.each(shards, (*sync.Mutex).Lock)
	return shards
}

func (o *order) unlock(shards uint64) { o.each(shards, (*sync.Mutex).Unlock) }

func (o *order) each(shards uint64, do func(*sync.Mutex)) {
	for i := range o.shards {
		if shards&(1<<i) != 0 {
			do(&o.shards[i])
		}
	}
}
