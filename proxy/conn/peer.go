package conn

import (
	"crypto/tls"
	"net"
	"time"
)

// These times decide when a peer counts as gone because its machine does not answer. One or
// two packets may be lost before, and a link may be down for a few seconds.
const (
	peerAsked = 5 * time.Second  // the silence before a keep-alive question, and the pause between two
	peerGone  = 20 * time.Second // how long it may leave what was sent unacknowledged
)

// WatchPeer makes the kernel end the connection when the peer's machine has not answered
// for about 20 s, instead of after many minutes. It does nothing for a Unix socket, whose
// other end is here. A process that is merely stopped is not noticed: its kernel answers.
func (s *Socket) WatchPeer() {
	conn := s.Conn
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	if on := s.on.Load(); on != nil {
		on.Control(watchDescriptor)
		return
	}
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: peerAsked, Interval: peerAsked, Count: int(peerGone/peerAsked) - 1})
	limitUnacknowledged(tcp, peerGone)
}
