package ballot

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"redlock-proxy/redlock/resp"
)

// heavies lets only one large question be with the masters at a time, because all others
// wait behind it on the masters' streams. A question is large if its bytes are, or if a
// master's answer to the last one like it was.
type heavies struct {
	turn  chan struct{} // has room for one
	seed  maphash.Seed
	known [1 << 10]atomic.Uint64 // subjects of large answers, each at its own place
}

// heavy is the most bytes of a question or an answer that is not large.
const heavy = 32 << 10

// subjectBytes are enough of a question for its command and its first key, unless that is
// long.
const subjectBytes = 160

func newHeavies() *heavies { return &heavies{turn: make(chan struct{}, 1), seed: maphash.MakeSeed()} }

// subject is the same for questions whose answers are probably of one size. It is never 0.
func (h *heavies) subject(db int, frames []byte) uint64 {
	return maphash.Bytes(h.seed, frames[:min(len(frames), subjectBytes)]) + uint64(db)<<1 | 1
}

func (h *heavies) place(subject uint64) *atomic.Uint64 {
	return &h.known[subject>>32%uint64(len(h.known))]
}

// are tells whether a question is large.
func (h *heavies) are(subject uint64, frames []byte) bool {
	return len(frames) > heavy || h.place(subject).Load() == subject
}

// enter waits for the turn. passOn gives it to the next one, once.
func (h *heavies) enter() (passOn func()) {
	h.turn <- struct{}{}
	return sync.OnceFunc(func() { <-h.turn })
}

// note remembers how large an answer was.
func (h *heavies) note(subject uint64, replies [][]byte) {
	size := 0
	for _, reply := range replies {
		size += len(reply)
		if resp.IsTooLong(reply) {
			size += heavy
		}
	}
	place := h.place(subject)
	switch known := place.Load() == subject; {
	case size > heavy && !known:
		place.Store(subject)
	case size <= heavy && known:
		place.CompareAndSwap(subject, 0)
	}
}
