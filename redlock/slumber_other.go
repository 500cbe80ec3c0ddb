//go:build !linux

package redlock

import "time"

// suspendedFor is not known here. All masters then seem to jump together.
func suspendedFor() time.Duration { return 0 }
