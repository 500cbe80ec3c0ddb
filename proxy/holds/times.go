package holds

import (
	"hash/maphash"
	"time"
)

const (
	// mostHeld and mostWaiting bound the locks and the waiting clients that are remembered.
	mostHeld    = 16_384
	mostWaiting = 4_096
	// retryPause is longer than the pause between two tries of a client that still waits.
	retryPause = 30 * time.Second
)

// A Lock is a lock's key in a database. It is not kept.
type Lock struct {
	DB  int
	Key []byte
}

// Times measures holds and waits. Now is the time of the event, and must come from the
// monotonic clock.
type Times struct {
	seed    maphash.Seed
	began   time.Time
	held    table
	waiting table
}

// New makes a Times that has seen nothing.
func New() *Times {
	now := time.Now()
	return &Times{seed: maphash.MakeSeed(), began: now, held: newTable(mostHeld), waiting: newTable(mostWaiting)}
}

// Took notes that a client took a lock by a command that began at began. client identifies
// the client; nil: unknown. Took returns how long the client waited for the lock.
func Took[C any](t *Times, lock Lock, client *C, began, now time.Time) (waited time.Duration) {
	hash := t.hash(lock)
	t.held.put(hash, entry{since: t.at(now), last: t.at(now)})
	if client != nil {
		if e, tried := t.waiting.take(of(t, hash, client)); tried && t.at(began)-e.last < retryPause {
			began = t.began.Add(e.since)
		}
	}
	return now.Sub(began)
}

// Refused notes that a client tried in vain to take a lock, by a command that began at began.
func Refused[C any](t *Times, lock Lock, client *C, began, now time.Time) {
	if client == nil {
		return
	}
	hash := of(t, t.hash(lock), client)
	next := entry{since: t.at(began), last: t.at(now)}
	if e, tried := t.waiting.take(hash); tried && t.at(began)-e.last < retryPause {
		next.since = e.since
	}
	t.waiting.put(hash, next)
}

// Released notes that a lock was released. ok is false if nobody knows since when it was held.
func (t *Times) Released(lock Lock, now time.Time) (held time.Duration, ok bool) {
	e, ok := t.held.take(t.hash(lock))
	return t.at(now) - e.since, ok
}

func (t *Times) at(now time.Time) time.Duration { return now.Sub(t.began) }

func (t *Times) hash(lock Lock) uint64 {
	return maphash.Bytes(t.seed, lock.Key) ^ maphash.Comparable(t.seed, lock.DB)
}

// of returns the hash of a client's wait for a lock.
func of[C any](t *Times, lock uint64, client *C) uint64 {
	return lock ^ maphash.Comparable(t.seed, client)
}
