package master

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspendedFor returns how long this machine has been suspended since it started.
// CLOCK_BOOTTIME runs on during that time. CLOCK_MONOTONIC, which Go reads, does not. If
// a virtual machine is paused from outside, both mostly stop.
func suspendedFor() time.Duration {
	var boot, monotonic unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - monotonic.Nano())
}
