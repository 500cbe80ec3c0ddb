package redlock

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/redlock/roster"
)

// Why a master is away is said in the same words at each redial.
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
		{func(int) error { return errors.Join(io.EOF, closed) }, ": it has ended the connection"},
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

// standings notes every reason that a Locker tells of a master.
type standings struct {
	nobody
	mu   sync.Mutex
	told map[string][]string
}

func (s *standings) Standing(m roster.MasterStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[m.Name] = append(s.told[m.Name], m.Reason)
}

func (s *standings) of(master string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told[master])
}

// The status of a master that is away says why, in the server's own words where
// it has any, and says it once however often it is dialled.
func TestStatusSaysWhyAMasterIsAway(t *testing.T) {
	locked, full := startLiveMaster(t, "--requirepass", "secret"), startLiveMaster(t, "--maxclients", "1")
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	told := &standings{told: map[string][]string{}}
	var dials [4]atomic.Int64
	master := func(i int, name, network, address, password string) Master {
		return Master{Name: name, Password: password, Dial: func(ctx context.Context) (net.Conn, error) {
			dials[i].Add(1)
			return new(net.Dialer).DialContext(ctx, network, address)
		}}
	}
	locker, err := New(Config{MasterTimeout: livePatience, Observer: told, Masters: []Master{
		master(0, "wrong password", "unix", locked.socket, "guess"),
		master(1, "no password", "unix", locked.socket, ""),
		master(2, "full", "unix", full.socket, ""),
		master(3, "nobody", "tcp", nobody.Addr().String(), ""),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		locker.Close(gone)
	}()
	for deadline := time.Now().Add(livePatience); ; time.Sleep(5 * time.Millisecond) {
		often := true
		for i := range dials {
			often = often && dials[i].Load() >= 3
		}
		if often {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the masters are not dialled again")
		}
	}
	for i, want := range []string{
		"it is not connected: AUTH refused: WRONGPASS",
		"it is not connected: CLIENT refused: NOAUTH Authentication required.",
		"it is not connected: CLIENT refused: ERR max number of clients reached",
		"it is not connected: connection refused",
	} {
		status := locker.Status().Masters[i]
		if got := told.of(status.Name); status.State != roster.Away || status.Reason != want || !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %v: %q, and was told as %q", status.Name, status.State, status.Reason, got)
		}
	}
}
