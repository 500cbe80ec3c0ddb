package run

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/resp"
)

// revoked remembers the last copies of which an undo was queued. A client that was refused
// may send its release before a late grant is undone, and the release then finds this grant
// on that master alone. Such a deletion is not put back: nobody holds the copy, and its undo
// follows. An undo from before the release does not count: the release came after it on the
// stream, so what it found is another copy.
type revoked struct {
	mu   sync.Mutex
	last [mostRevoked]revocation
	next int
}

// mostRevoked is the number of copies remembered. It needs to cover only what is undone while
// one release is under way. If it is too small, mend deletes the copy.
const mostRevoked = 512

// A revokedCopy identifies a copy on one master. It holds no value.
type revokedCopy struct {
	sum    uint64 // of master, database, key and content
	expiry int64
}

// A revocation is an undo of a copy.
type revocation struct {
	revokedCopy
	queued time.Time
}

var revokedSeed = maphash.MakeSeed()

func copyOf(master, db int, key []byte, i effect.Image) revokedCopy {
	type identity struct {
		master, db int
		key, dump  string
	}
	return revokedCopy{maphash.Comparable(revokedSeed, identity{master, db, string(key), string(i.Dump)}), i.Expiry()}
}

// add remembers a copy whose undo is queued.
func (r *revoked) add(c revokedCopy, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[r.next] = revocation{c, now}
	r.next = (r.next + 1) % mostRevoked
}

// since tells whether an undo of a copy was queued at a time or later. Two looks at one expiry
// may differ a little.
func (r *revoked) since(began time.Time, c revokedCopy) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.last[:], func(was revocation) bool {
		return !was.queued.Before(began) && was.sum == c.sum && effect.Near(was.expiry, c.expiry, resp.ExpiryTolerance)
	})
}
