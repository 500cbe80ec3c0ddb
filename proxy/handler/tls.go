package handler

import (
	"crypto/tls"
	"net"

	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/redlock/loop"
)

// OverTLS returns a listener whose clients speak TLS. It calls current for each client, so
// that a reload can replace the files. Accept does not wait for handshakes; the sessions do
// them.
func OverTLS(listener net.Listener, current func() *endpoint.TLS) net.Listener {
	return tls.NewListener(belowTLS{listener}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return current().Config(), nil
		},
	})
}

// belowTLS has the loop read and write the connections below TLS.
type belowTLS struct{ net.Listener }

func (l belowTLS) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return loop.Below(c), nil
}
