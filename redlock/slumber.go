package redlock

import (
	"sync/atomic"
	"time"
)

// A slumber knows for how long this machine has been suspended. Asking for that
// costs system calls, so it is asked with each beat, and where a master's clock
// seems to have jumped.
type slumber struct {
	read  func() time.Duration
	known atomic.Int64
}

func newSlumber(read func() time.Duration) *slumber {
	s := &slumber{read: read}
	s.look()
	return s
}

// slumberStep is what two clocks that are read one after the other may seem to
// differ by. No machine is suspended for so short a time.
const slumberStep = 10 * time.Millisecond

// look asks. It returns the same as before unless the machine was suspended.
func (s *slumber) look() time.Duration {
	known := s.known.Load()
	if now := s.read(); (now - time.Duration(known)).Abs() >= slumberStep {
		s.known.CompareAndSwap(known, int64(now))
	}
	return s.last()
}

// last is what was asked last.
func (s *slumber) last() time.Duration { return time.Duration(s.known.Load()) }
