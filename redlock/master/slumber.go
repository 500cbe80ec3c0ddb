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

// apart returns by how much clock boot is ahead of clock monotonic, or less by under slumberStep. On
// a busy machine this thread may have to wait between two readings. Then the clocks are read again,
// or the machine would seem to have been suspended.
func apart(boot, monotonic func() time.Duration) time.Duration {
	for {
		began := monotonic()
		now := boot()
		switch ended := monotonic(); {
		case now == 0: // the system has no such clock
			return 0
		case ended-began < slumberStep:
			return now - ended
		}
	}
}

// last returns the suspended time as it was read last.
func (s *slumber) last() time.Duration { return time.Duration(s.known.Load()) }
