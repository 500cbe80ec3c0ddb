//go:build !linux

package conn

import (
	"net"
	"time"
)

// limitUnacknowledged does nothing: the option is Linux's.
func limitUnacknowledged(*net.TCPConn, time.Duration) {}

// watchDescriptor does nothing: there is no loop.
func watchDescriptor(uintptr) {}
