package master

import (
	"sync/atomic"
	"time"
)

// A slumber knows how long this machine has been suspended. Reading that costs system
// calls. So it is read with each beat, and when a master's clock seems to have jumped.
type slumber struct {
	read  func() time.Duration
	known atomic.Int64
}

func newSlumber(read func() time.Duration) *slumber {
	s := &slumber{read: read}
	s.look()
	return s
}

// slumberStep is the difference that two clocks, read one after the other, may seem to
// have. No machine is suspended for so short a time.
const slumberStep = 10 * time.Millisecond

// look reads the suspended time again. It returns the same as before unless the machine
// was suspended since.
func (s *slumber) look() time.Duration {
	known := s.known.Load()
	if now := s.read(); (now - time.Duration(known)).Abs() >= slumberStep {
		s.known.CompareAndSwap(known, int64(now))
	}
	return s.last()
}

// last returns the suspended time as it was read last.
func (s *slumber) last() time.Duration { return time.Duration(s.known.Load()) }
