package run

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"

	"redlock-proxy/redlock/effect"
	"redlock-proxy/redlock/resp"
)

// revoked remembers the last copies of which an undo was queued. A client that was refused
// may send its release before a late grant is undone, and the release then finds this grant
// on that master alone. Such a deletion is not put back: nobody holds the copy, and the undo
// has gone out before.
type revoked struct {
	mu   sync.Mutex
	last [mostRevoked]revokedCopy
	next int
}

// mostRevoked is the number of copies remembered. It needs to cover only what is undone while
// one release is under way. If it is too small, mend deletes the copy.
const mostRevoked = 512

// A revokedCopy identifies a copy on one master. It holds no value.
type revokedCopy struct {
	master, db int
	sum        uint64 // of key and content
	expiry     int64
}

var revokedSeed = maphash.MakeSeed()

func copyOf(master, db int, key []byte, i effect.Image) revokedCopy {
	var h maphash.Hash
	h.SetSeed(revokedSeed)
	h.Write(binary.AppendUvarint(nil, uint64(len(key))))
	h.Write(key)
	h.Write(i.Dump)
	return revokedCopy{master, db, h.Sum64(), i.Expiry()}
}

// add remembers a copy whose undo is queued.
func (r *revoked) add(c revokedCopy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[r.next] = c
	r.next = (r.next + 1) % mostRevoked
}

// has tells whether a copy is remembered. Two looks at one expiry may differ a little.
func (r *revoked) has(c revokedCopy) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.last[:], func(was revokedCopy) bool {
		same := was.master == c.master && was.db == c.db && was.sum == c.sum
		return same && effect.Near(was.expiry, c.expiry, resp.ExpiryTolerance)
	})
}
