package scan

import (
	"crypto/sha256"
	"time"

	"redlock-proxy/redlock/quorum"
)

// A Holding is what copies of a key come to.
type Holding struct {
	Copy        // the copy of the most masters
	Holders int // so many voting masters hold it
	Others  int // so many hold another content, or hold it and may not vote
	Missing int // so many gave no answer, or may have forgotten the key
	Masters int
	Needed  int
	State   HoldingState
}

// HoldingState says whether somebody holds the lock.
type HoldingState uint8

const (
	Free     HoldingState = iota // no quorum holds anything
	Held                         // a quorum holds the same content
	Disputed                     // a quorum holds something, but no content can have a quorum
	Unknown                      // it depends on masters that cannot vote
)

func (s HoldingState) String() string { return [...]string{"free", "held", "disputed", "unknown"}[s] }

// Hold says what the copies of a key come to. TTL is what a quorum has left.
func Hold(copies []Copy) Holding {
	h := Holding{Masters: len(copies), Needed: quorum.Size(len(copies))}
	groups, present := map[[sha256.Size]byte]int{}, 0
	for _, c := range copies {
		switch {
		case c.Votes && c.there():
			present++
			groups[c.sum]++
			if groups[c.sum] > h.Holders {
				h.Copy, h.Holders = c, groups[c.sum]
			}
		case c.Votes:
		default:
			h.Missing++
			if c.there() {
				h.Others++
			}
		}
	}
	h.Others += present - h.Holders
	switch {
	case h.Holders >= h.Needed:
		h.State, h.TTL = Held, quorumTTL(copies, h.Copy)
	case present >= h.Needed && h.Holders+h.Missing < h.Needed:
		h.State = Disputed
	case present+h.Missing >= h.Needed:
		h.State = Unknown
	}
	return h
}

func quorumTTL(copies []Copy, of Copy) time.Duration {
	var left []int64
	for _, c := range copies {
		if c.Votes && c.there() && c.sum == of.sum {
			left = append(left, int64(c.TTL))
		}
	}
	n, _ := quorum.AttainedTTL(len(copies), left)
	return time.Duration(n) // NoTTL if it is endless
}
