package handler

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/session"
)

// fullListener accepts nobody for a while, and is then closed.
type fullListener struct {
	net.Listener
	times int
}

func (l *fullListener) Accept() (net.Conn, error) {
	if l.times--; l.times < 0 {
		return nil, net.ErrClosed
	}
	return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
}

func (l *fullListener) Close() error { return nil }

// While no client can be accepted, the log says so once and not at every attempt. It says what to do.
func TestClientsThatCannotBeAcceptedAreLoggedOnce(t *testing.T) {
	log := &proxytest.Log{}
	v := &Service{env: &session.Env{Log: slog.New(slog.NewTextHandler(log, nil))}, door: newDoor()}
	if err := v.Serve(&fullListener{times: 4}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	const line = "cannot accept clients; raise the limit of open files (ulimit -n, LimitNOFILE=) if too many are open\" error=\"accept: too many open files\""
	if text := log.String(); strings.Count(text, line) != 1 || strings.Count(text, "\n") != 1 {
		t.Errorf("the log has\n%s", text)
	}
}
