package journal

import (
	"hash/maphash"
	"sync"
)

// A Journal is the memory of a process.
type Journal struct {
	seed   maphash.Seed
	keys   [keyShards]keyShard
	hot    [hotShards]hotShard
	slow   slowLog
	values maphash.Seed // of the hashes of values

	clientsMu sync.Mutex
	clients   map[*Client]struct{}
}

// New makes an empty Journal.
func New() *Journal {
	return &Journal{seed: maphash.MakeSeed(), values: maphash.MakeSeed(), clients: map[*Client]struct{}{}}
}

func (j *Journal) hash(db int, key []byte) uint64 {
	return maphash.Bytes(j.seed, key) ^ uint64(db)*0x9e3779b97f4a7c15
}
