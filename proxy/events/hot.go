package events

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

const (
	hotShards  = 16
	hotKeys    = 64 // of a shard
	hotMinutes = 5
)

// A hotShard counts refusals of the keys that were refused most, as the Space-Saving sketch
// does: a new key takes the place of the least refused one, and its count as an error.
type hotShard struct {
	sync.Mutex
	keys []hotKey
}

type hotKey struct {
	hash    uint64
	db      int
	key     []byte // the first longestKept bytes
	minutes [hotMinutes]uint32
	minute  int64 // of the newest of minutes
	taken   uint32
}

// roll makes minute the newest one.
func (k *hotKey) roll(minute int64) {
	for passed := min(minute-k.minute, hotMinutes); passed > 0; passed-- {
		copy(k.minutes[1:], k.minutes[:])
		k.minutes[0] = 0
	}
	k.minute = max(k.minute, minute)
}

func (k *hotKey) count() (n uint32) {
	for _, of := range k.minutes {
		n += of
	}
	return n
}

// refuse counts a refusal.
func (j *Journal) refuse(hash uint64, e KeyEvent) {
	minute := e.At.Unix() / 60
	s := &j.hot[hash%hotShards]
	s.Lock()
	defer s.Unlock()
	k := s.find(hash, minute)
	if k == nil {
		k = s.replace(minute)
		k.hash, k.db, k.key = hash, e.DB, append(k.key[:0], e.Key[:min(len(e.Key), longestKept)]...)
	}
	k.roll(minute)
	k.minutes[0]++
}

func (s *hotShard) find(hash uint64, minute int64) *hotKey {
	for i := range s.keys {
		if s.keys[i].hash == hash {
			s.keys[i].roll(minute)
			return &s.keys[i]
		}
	}
	return nil
}

// replace returns the place for a new key.
func (s *hotShard) replace(minute int64) *hotKey {
	if len(s.keys) < hotKeys {
		s.keys = append(s.keys, hotKey{minute: minute})
		return &s.keys[len(s.keys)-1]
	}
	least := &s.keys[0]
	for i := range s.keys {
		s.keys[i].roll(minute)
		if s.keys[i].count() < least.count() {
			least = &s.keys[i]
		}
	}
	least.taken = least.count()
	return least
}

// A HotKey is a key with the number of its refusals in the last five minutes.
type HotKey struct {
	Key      string
	DB       int
	Refusals int64
	Excess   int64 // Refusals may be too high by this much
}

// Hottest returns the most refused keys for which shows returns true, n at most.
func (j *Journal) Hottest(n int, now time.Time, shows func(db int, key []byte) bool) (list []HotKey) {
	for i := range j.hot {
		list = append(list, j.hot[i].list(now.Unix()/60)...)
	}
	list = slices.DeleteFunc(list, func(k HotKey) bool { return k.Refusals == 0 || !shows(k.DB, []byte(k.Key)) })
	slices.SortFunc(list, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.Refusals, a.Refusals), cmp.Compare(a.DB, b.DB), cmp.Compare(a.Key, b.Key))
	})
	return list[:min(n, len(list))]
}

func (s *hotShard) list(minute int64) (list []HotKey) {
	s.Lock()
	defer s.Unlock()
	for i := range s.keys {
		k := &s.keys[i]
		k.roll(minute)
		n := int64(k.count())
		list = append(list, HotKey{string(k.key), k.db, n, min(n, int64(k.taken))})
	}
	return list
}
