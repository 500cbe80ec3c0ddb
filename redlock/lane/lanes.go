package lane

import (
	"math/bits"
	"sync"

	"redlock-proxy/redlock/loop"
)

// Lanes are the lanes of all keys. A is the type of the answer that a request may get
// while it waits for its turn.
type Lanes[A any] struct {
	loop   *loop.Loop
	shards [64]shard[A]
}

// A Key is a key in its database.
type Key struct {
	DB   int
	Name string
}

type shard[A any] struct {
	sync.Mutex
	lanes   map[Key]*lane[A]
	spare   *lane[A]    // the last lane that became empty, for the next key; may be nil
	created [256]uint32 // see Creations
}

// New makes Lanes. No key has a lane yet. Requests are tasks of the loop, or nobody's (nil).
func New[A any](tasks *loop.Loop) *Lanes[A] {
	l := &Lanes[A]{loop: tasks}
	for i := range l.shards {
		l.shards[i].lanes = map[Key]*lane[A]{}
	}
	return l
}

// locate returns a key's shard, and its counter in that shard.
func (l *Lanes[A]) locate(k Key) (shard int, counter *uint32) {
	h := l.loop.Hash(k.Name) + uint64(k.DB)
	shard, h = int(h%uint64(len(l.shards))), h/uint64(len(l.shards))
	created := &l.shards[shard].created
	return shard, &created[h%uint64(len(created))]
}

// lock locks the shards of keys from the lowest up, so that no two callers wait for each
// other. It returns one bit for each shard.
func (l *Lanes[A]) lock(db int, keys []string) (held uint64) {
	for _, key := range keys {
		shard, _ := l.locate(Key{db, key})
		held |= 1 << shard
	}
	for rest := held; rest != 0; rest &= rest - 1 {
		l.shards[bits.TrailingZeros64(rest)].Lock()
	}
	return held
}

func (l *Lanes[A]) unlock(held uint64) {
	for rest := held; rest != 0; rest &= rest - 1 {
		l.shards[bits.TrailingZeros64(rest)].Unlock()
	}
}

// each calls do with the lane of each key. The caller holds the shards.
func (l *Lanes[A]) each(db int, keys []string, do func(*lane[A])) {
	for _, key := range keys {
		k := Key{db, key}
		at, _ := l.locate(k)
		sh := &l.shards[at]
		ln := sh.lanes[k]
		if ln == nil {
			ln = sh.open(k)
		}
		do(ln)
		if ln.isEmpty() {
			delete(sh.lanes, k)
			*ln = lane[A]{}
			sh.spare = ln
		}
	}
}

// open makes the lane of a key. The caller holds the shard.
func (s *shard[A]) open(k Key) *lane[A] {
	ln := s.spare
	if ln == nil {
		ln = &lane[A]{}
	}
	s.spare = nil
	s.lanes[k] = ln
	return ln
}

// with locks the shards of keys and calls do with each lane.
func (l *Lanes[A]) with(db int, keys []string, do func(*lane[A])) {
	held := l.lock(db, keys)
	defer l.unlock(held)
	l.each(db, keys, do)
}
