package redlock

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspendedFor is for how long this machine has been suspended since it started:
// CLOCK_BOOTTIME runs on then, and CLOCK_MONOTONIC, which Go reads, does not. A
// virtual machine that is paused from outside mostly stops both.
func suspendedFor() time.Duration {
	var boot, monotonic unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - monotonic.Nano())
}
