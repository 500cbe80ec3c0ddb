package endpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"redlock-proxy/redlock/resp"
)

type serverAnswer string

func (a serverAnswer) Error() string { return string(a) }
func (serverAnswer) RedisError()     {}

// An operator reads what to do about a server that cannot be used.
func TestExplain(t *testing.T) {
	plain, encrypted := Endpoint{}, Endpoint{TLS: &TLS{}}
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	reset := &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
	for _, row := range []struct {
		server Endpoint
		err    error
		want   string
	}{
		{plain, serverAnswer("NOAUTH Authentication required."), "NOAUTH Authentication required; set user and password in the server's URL"},
		{encrypted, serverAnswer("WRONGPASS invalid username-password pair or user is disabled."),
			"WRONGPASS invalid username-password pair or user is disabled; correct user and password in the server's URL"},
		{plain, serverAnswer("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"),
			"ERR AUTH <password> called without any password configured for the default user; take the password out of the server's URL, or set one there"},
		{plain, serverAnswer("LOADING Redis is loading the dataset in memory"), "LOADING Redis is loading the dataset in memory"},
		{plain, resp.MalformedError("unknown type byte"), "malformed reply: unknown type byte; what listens there is no Redis"},
		{plain, context.DeadlineExceeded, "it did not answer in time"},
		{plain, dial(os.ErrDeadlineExceeded), "it did not answer in time"},
		{encrypted, fmt.Errorf("a handshake: %w", context.DeadlineExceeded), "it did not answer in time; perhaps it speaks no TLS, and its URL asks for TLS"},
		{plain, fmt.Errorf("a:1, which the Sentinels name as m: %w", plain.Explain(os.ErrDeadlineExceeded)), "a:1, which the Sentinels name as m: it did not answer in time"},
		{plain, io.EOF, "it closed the connection; perhaps it speaks TLS, and its URL does not ask for TLS"},
		{plain, reset, "it closed the connection; perhaps it speaks TLS, and its URL does not ask for TLS"},
		{encrypted, io.EOF, "EOF"},
		{plain, dial(&net.DNSError{Name: "redis.example", Err: "i/o timeout", IsTimeout: true}), "dial tcp: lookup redis.example: i/o timeout"},
		{plain, dial(syscall.ECONNREFUSED), "dial tcp: connection refused"},
	} {
		got := row.server.Explain(row.err)
		if got.Error() != row.want || !errors.Is(got, row.err) {
			t.Errorf("%v:\n got %v\nwant %s", row.err, got, row.want)
		}
	}
	if err := plain.Explain(nil); err != nil {
		t.Errorf("an answer is an error: %v", err)
	}
}
