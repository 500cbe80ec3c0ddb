package master

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspendedFor returns how long this machine has been suspended since it started.
// CLOCK_BOOTTIME runs on during that time. CLOCK_MONOTONIC, which Go reads, does not. If
// a virtual machine is paused from outside, both mostly stop.
func suspendedFor() time.Duration {
	return apart(func() time.Duration { return readClock(unix.CLOCK_BOOTTIME) }, func() time.Duration { return readClock(unix.CLOCK_MONOTONIC) })
}

// readClock returns 0 if the kernel does not have the clock.
func readClock(clock int32) time.Duration {
	var now unix.Timespec
	if unix.ClockGettime(clock, &now) != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
