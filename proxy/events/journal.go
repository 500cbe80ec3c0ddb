package events

import (
	"hash/maphash"
	"log/slog"
	"time"
)

// A Journal is the memory of a process.
type Journal struct {
	began   time.Time // times in keys and tries count from here, by the monotonic clock
	seed    maphash.Seed
	keys    [keyShards]keyShard
	clients roll
	hot     [hotShards]hotShard
	values  maphash.Seed // of the hashes of values

	commands commands
	masters  masters
	log      *slog.Logger // hears of the masters
}

// New makes an empty Journal.
func New(log *slog.Logger) *Journal {
	return &Journal{
		began: time.Now().Add(-time.Second), seed: maphash.MakeSeed(), values: maphash.MakeSeed(),
		clients: roll{byID: map[int64]*Client{}},
		masters: masters{known: map[string]*master{}, turned: make(chan struct{}, 1)}, log: log,
	}
}

func (j *Journal) hash(db int, key []byte) uint64 {
	return maphash.Bytes(j.seed, key) ^ uint64(db)*0x9e3779b97f4a7c15
}

// at is a time since the Journal began, which is never 0.
func (j *Journal) at(t time.Time) int64 { return int64(t.Sub(j.began)) }

func (j *Journal) timeOf(at int64) time.Time { return j.began.Add(time.Duration(at)) }
