package quorum

import "math/bits"

// A Set is a set of masters: a bit for each, by its number from 0 up.
type Set uint64

// MaxMasters is how many masters a Set can tell apart.
const MaxMasters = 64

// Has tells whether a master is in it.
func (s Set) Has(master int) bool { return s&(1<<master) != 0 }

// Len is how many masters are in it.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }
