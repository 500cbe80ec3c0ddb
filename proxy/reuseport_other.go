//go:build !linux

package proxy

import (
	"errors"
	"syscall"
)

// setReusePort refuses. Other systems give all clients to one process, or know no such option.
func setReusePort(string, string, syscall.RawConn) error { return errors.ErrUnsupported }
