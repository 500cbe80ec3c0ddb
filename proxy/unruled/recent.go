package unruled

import (
	"sync/atomic"
	"time"
)

// A taken says how somebody took a key, in one word: until when (in ticks, 32 bits), by whom (30 bits), and an acquire.
type taken uint64

const (
	acquireBits = 2
	byBits      = 30
	byMask      = 1<<byBits - 1
	tickBits    = 30 // a tick has 2^30 ns, about a second
)

// longestLife bounds a TTL.
const longestLife = 30 * 24 * time.Hour

// nobody is who took a key that no DEL gives back.
const nobody = 0

// newTaken returns the taken of an acquire. by is the ID of a script, or of a client, or nobody. The time may be a second
// late, so the life gets two ticks more: it must not seem to be over before it is.
func newTaken(how acquire, by uint64, now int64, life time.Duration) taken {
	until := uint64(now+int64(life))>>tickBits + 2
	return taken(until<<(byBits+acquireBits) | by&byMask<<acquireBits | uint64(how))
}

func (t taken) lasts(now int64) bool { return uint64(t)>>(byBits+acquireBits) > uint64(now)>>tickBits }

func (t taken) by(id uint64) bool { return uint64(t)>>acquireBits&byMask == id&byMask }

func (t taken) how() acquire { return acquire(t & (1<<acquireBits - 1)) }

// An acquire is a way to take a key.
type acquire uint8

const (
	bySet acquire = iota
	bySetNX
	byText
)

func (a acquire) text() string {
	return [...]string{bySet: "SET NX", bySetNX: "SETNX", byText: "a script that takes it"}[a]
}

// A release is a way to give a key back.
type release uint8

const (
	byDeletion release = iota
	byComparison
	byScript
)

func (r release) text(s Shape) string {
	switch {
	case r == byDeletion:
		return "DEL"
	case r == byComparison:
		return "a comparing deletion"
	case s.ID == 0:
		return "a script of unknown text"
	case s.Deletes:
		return "a script that gives it back"
	}
	return "a script that extends it"
}

// endsBy tells whether a command belongs to a key that was taken so.
func (t taken) endsBy(how release, c *Command) bool {
	s := c.Script
	switch {
	case how == byComparison:
		return true
	case how == byDeletion:
		return t.how() != byText && t.by(uint64(c.Connection))
	case t.how() == byText:
		return s.Deletes && !t.by(s.ID)
	}
	return s.ID == 0 || s.Deletes || s.Extends
}

// places bounds the keys that are remembered.
const places = 8192

// recent holds the keys that were taken of late. A key has one place there, and makes the key that had it be forgotten.
// No mutex is held. So if two goroutines take two keys that have one place at the same moment, one of the keys
// may get what belongs to the other, and one use of it is missed or counted in vain.
type recent [places]struct {
	key   atomic.Uint64 // a hash of the database and the key; 0: this place is free
	taken atomic.Uint64
}

// find returns how a key was taken, if that has not ended.
func (r *recent) find(key uint64, now int64) (t taken, ok bool) {
	place := &r[key%places]
	if place.key.Load() != key {
		return 0, false
	}
	t = taken(place.taken.Load())
	return t, t.lasts(now)
}

func (r *recent) add(key uint64, t taken) {
	place := &r[key%places]
	place.taken.Store(uint64(t))
	place.key.Store(key)
}

// remove returns false if the key is not there any more.
func (r *recent) remove(key uint64) bool { return r[key%places].key.CompareAndSwap(key, 0) }

// unreadAfter is for how long a text stays unknown before it counts, in ms. A client sends it after NOSCRIPT, so it is
// longer than an answer takes.
const unreadAfter = 10_000

// unread remembers some scripts whose texts are unknown.
type unread struct {
	seen  [16]struct{ sha, since uint64 }
	lasts bool // one of them was run for long enough
}

// add tells whether this script was run for long enough, and whether it made lasts true.
func (u *unread) add(sha uint64, now int64) (lasts, first bool) {
	place := &u.seen[sha%uint64(len(u.seen))]
	if place.sha != sha {
		place.sha, place.since = sha, uint64(now)
	}
	lasts = uint64(now)-place.since >= unreadAfter
	first = lasts && !u.lasts
	u.lasts = u.lasts || lasts
	return lasts, first
}
