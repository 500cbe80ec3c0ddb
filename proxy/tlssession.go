package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"time"

	"redlock-proxy/proxy/endpoint"
)

// handshakePatience is how long a client may take for its TLS handshake, if
// limits.login_time is not shorter.
const handshakePatience = 10 * time.Second

// overTLS makes of a listener one whose clients speak TLS, by the files that
// are in force when a client comes. Accept does not wait for handshakes; the
// sessions do them.
func overTLS(listener net.Listener, current func() *endpoint.TLS) net.Listener {
	return tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return current().Config(), nil
		},
	})
}

// secure does the handshake of a client that came over TLS. It reports false
// when there is nobody to serve.
func (s *session) secure() bool {
	conn, encrypted := s.sock.Conn.(*tls.Conn)
	if !encrypted {
		return true
	}
	patience := handshakePatience
	if limit := s.server.settings().Limits.LoginTime; limit > 0 {
		patience = min(patience, limit)
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	err := conn.HandshakeContext(ctx)
	if err == nil {
		return true
	}
	// Who connects and says nothing is a load balancer that looks whether
	// somebody listens.
	if !errors.Is(err, io.EOF) && !s.draining.Load() {
		s.server.refuseHandshake(err, conn.RemoteAddr())
	}
	return false
}

func (srv *proxyServer) refuseHandshake(err error, from net.Addr) {
	srv.cfg.metrics.HandshakeFailed()
	if count, due := srv.failedHandshakes.due(time.Now()); due {
		srv.cfg.log.Warn("a client's TLS handshake failed",
			slog.String("client", from.String()), slog.Any("error", err), slog.Int("failed_since_last_line", count))
	}
}
