package journal

import "hash/maphash"

// A Journal is the memory of a process.
type Journal struct {
	seed    maphash.Seed
	keys    [keyShards]keyShard
	clients roll
	hot     [hotShards]hotShard
	slow    slowLog
	values  maphash.Seed // of the hashes of values
}

// New makes an empty Journal.
func New() *Journal {
	return &Journal{seed: maphash.MakeSeed(), values: maphash.MakeSeed(), clients: roll{byID: map[int64]*Client{}}}
}

func (j *Journal) hash(db int, key []byte) uint64 {
	return maphash.Bytes(j.seed, key) ^ uint64(db)*0x9e3779b97f4a7c15
}
