//go:build !race

package proxy

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/testca"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
)

// A bareClient is a descriptor, which takes no memory of this process.
type bareClient int

func dialBare(t *testing.T, address net.Addr) bareClient {
	t.Helper()
	at := address.(*net.TCPAddr)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}); err != nil {
		t.Fatal(err)
	}
	return bareClient(fd)
}

func (c bareClient) Read(p []byte) (n int, err error) {
	if n, err = syscall.Read(int(c), p); n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (c bareClient) Write(p []byte) (int, error) { return syscall.Write(int(c), p) }

// A bareConn is a bareClient for TLS.
type bareConn struct {
	net.Conn // nil: nothing else is called
	bareClient
}

func (c bareConn) Read(p []byte) (int, error)  { return c.bareClient.Read(p) }
func (c bareConn) Write(p []byte) (int, error) { return c.bareClient.Write(p) }

// takeAndRelease is what a client does before it is idle.
func takeAndRelease(t *testing.T, client io.ReadWriter) {
	t.Helper()
	for _, step := range [][2]string{
		{"SET lock:idle a-token-of-many-bytes NX PX 60000\r\n", "+OK\r\n"},
		{"DEL lock:idle\r\n", ":1\r\n"},
	} {
		if _, err := io.WriteString(client, step[0]); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(step[1]))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != step[1] {
			t.Fatalf("got %q (%v)", got, err)
		}
	}
}

// A client that locked and is idle takes little memory: it has no stack and no buffer. One with TLS has
// TLS's own. The race detector needs more memory. README gives what the kernel and the allocator add, too.
func TestMemoryOfAnIdleClient(t *testing.T) {
	authority := testca.New(t)
	shown := authority.Issue(time.Hour)
	files, err := endpoint.OpenTLS(endpoint.TLSOptions{CertFile: shown.CertFile, KeyFile: shown.KeyFile, CACertFile: authority.File, AuthClients: "no"})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := startWaitingProxy(t, 0, func(cfg *config.Config) { cfg.TLS.Listen, cfg.TLS.Files = "127.0.0.1:0", files })
	t.Run("plain", func(t *testing.T) {
		memoryOfIdleClients(t, 1000, 5<<10, func() { takeAndRelease(t, dialBare(t, p.listener.Addr())) })
	})
	t.Run("TLS", func(t *testing.T) {
		config := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
		memoryOfIdleClients(t, 100, 15<<10, func() {
			takeAndRelease(t, tls.Client(bareConn{bareClient: dialBare(t, p.tlsListener.Addr())}, config))
		})
	})
}

func memoryOfIdleClients(t *testing.T, count, most int, arrive func()) {
	inUse := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	for range count / 4 {
		arrive()
	}
	before := inUse()
	for range count {
		arrive()
	}
	each := 0
	defer func() { t.Logf("%d bytes each", each) }()
	eventually(t, fmt.Sprintf("an idle client takes %d bytes or fewer", most), func() bool { // what else runs ends meanwhile
		each = (inUse() - before) / count
		return each <= most
	})
}
