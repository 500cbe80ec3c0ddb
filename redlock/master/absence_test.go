package master

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/redlock/roster"
)

// The words for why a master is unreachable are the same at each redial.
func TestAbsenceIsWordedWithoutSockets(t *testing.T) {
	ours := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: port} }
	theirs := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6379}
	system := func(call string, no syscall.Errno) error { return os.NewSyscallError(call, no) }
	closed := &net.OpError{Op: "read", Net: "tcp", Source: ours(1), Addr: theirs, Err: net.ErrClosed}
	for _, row := range []struct {
		why  func(port int) error
		want string
	}{
		{func(int) error { return nil }, ""},
		{func(int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Addr: theirs, Err: system("connect", syscall.ECONNREFUSED)}
		}, ": connection refused"},
		{func(int) error {
			return &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: "/run/r"}, Err: system("connect", syscall.ENOENT)}
		}, ": no such file or directory"},
		{func(port int) error {
			return &net.OpError{Op: "read", Net: "tcp", Source: ours(port), Addr: theirs, Err: system("read", syscall.ECONNRESET)}
		}, ": connection reset by peer"},
		{func(port int) error {
			return errors.Join(closed, &net.OpError{Op: "write", Net: "tcp", Source: ours(port), Addr: theirs, Err: os.ErrDeadlineExceeded})
		}, ": i/o timeout"},
		{func(port int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
				Err: fmt.Sprintf("read udp 10.0.0.9:%d->10.0.0.53:53: i/o timeout", port), Name: "m1", Server: "10.0.0.53:53", IsTimeout: true}}
		}, ": lookup m1: i/o timeout"},
		{func(int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "m1", IsNotFound: true}}
		}, ": lookup m1: no such host"},
		{func(int) error { return errors.Join(io.EOF, closed) }, ": it closed the connection"},
		{func(int) error { return errors.Join(closed, nil) }, ": it did not answer in time"},
		{func(int) error { return errors.Join(closed, context.DeadlineExceeded) }, ": it did not answer in time"},
		{func(int) error {
			return &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}
		}, ": x509: certificate signed by unknown authority"},
		{func(port int) error {
			return &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired,
				Detail: fmt.Sprintf("current time 2026-11-21T05:10:%02dZ is after 2026-01-01T00:00:00Z", port%60)}}
		}, ": x509: certificate has expired or is not yet valid"},
		{func(int) error { return errors.New("one\r\nline") }, ": one  line"},
		{func(int) error { return errors.New(strings.Repeat("é", maxCause)) }, ": " + strings.Repeat("é", maxCause/2) + "..."},
	} {
		for _, port := range []int{41234, 58765} {
			if got := absence(row.why(port)); got != roster.NotConnected+row.want {
				t.Errorf("%v\n got %q\nwant %q", row.why(port), got, roster.NotConnected+row.want)
			}
		}
	}
}
