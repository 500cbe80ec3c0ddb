package conn

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged sets TCP_USER_TIMEOUT. Keep-alive does not ask while something that
// was sent is unacknowledged, or while the peer's window is closed.
func limitUnacknowledged(tcp *net.TCPConn, most time.Duration) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(most.Milliseconds()))
	})
}

// watchDescriptor is WatchPeer for a TCP socket that a loop has.
func watchDescriptor(fd uintptr) {
	for _, option := range [][3]int{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, int(peerAsked.Seconds())},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, int(peerAsked.Seconds())},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, int(peerGone/peerAsked) - 1},
		{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(peerGone.Milliseconds())},
	} {
		_ = unix.SetsockoptInt(int(fd), option[0], option[1], option[2])
	}
}
