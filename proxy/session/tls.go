package session

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"time"
)

// handshakeTLS does the handshake of a client that came over TLS, away from the loop. It returns
// false if it failed.
func (s *Session) handshakeTLS() bool {
	client, encrypted := s.client.(*tls.Conn)
	if !encrypted {
		return true
	}
	s.task.Leave()
	patience := handshakePatience
	if limit := s.Env.Active.Load().Limits.LoginTime; limit > 0 {
		patience = min(patience, limit)
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	err := client.HandshakeContext(ctx)
	// A client that connects and sends nothing is a load balancer's health check.
	if err != nil && !errors.Is(err, io.EOF) && !s.HasEnded(Draining) {
		s.End(HandshakeFailed, slog.String("client", s.RemoteAddr().String()), slog.Any("error", err))
	}
	if err != nil {
		return false
	}
	s.task.Back()
	return true
}

// handshakePatience bounds a client's TLS handshake, unless limits.login_time is shorter.
const handshakePatience = 10 * time.Second
