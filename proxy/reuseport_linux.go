package proxy

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// setReusePort lets other processes of this user listen on the address of a socket, too.
func setReusePort(_, _ string, socket syscall.RawConn) error {
	var err error
	if failed := socket.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}); failed != nil {
		return failed
	}
	return err
}
