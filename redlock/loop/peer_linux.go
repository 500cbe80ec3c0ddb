package loop

import (
	"time"

	"golang.org/x/sys/unix"
)

// These times decide when a peer counts as gone because its machine does not answer. One or
// two packets may be lost before, and a link may be down for a few seconds.
const (
	peerAsked = 5 * time.Second  // the silence before a keep-alive question, and the pause between two
	peerGone  = 20 * time.Second // how long it may leave what was sent unacknowledged
)

// WatchPeer makes the kernel end the connection when the peer's machine has not answered for about
// 20 s, instead of after many minutes. A process that is merely stopped is not noticed: its kernel answers.
func (s *Socket) WatchPeer() { s.Do(func() { s.source.control(watchPeer) }) }

// watchPeer sets the options of a TCP connection. Keep-alive does not ask while something that was sent is
// unacknowledged, or while the peer's window is closed; then TCP_USER_TIMEOUT counts. A Unix socket, whose
// other end is here, has no such options.
func watchPeer(fd uintptr) {
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
