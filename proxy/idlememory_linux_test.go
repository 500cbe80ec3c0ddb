//go:build !race

package proxy

import (
	"fmt"
	"net"
	"runtime"
	"syscall"
	"testing"
)

// A bareClient is a descriptor, which takes no memory of this process.
type bareClient int

func dialBare(t *testing.T, address *net.TCPAddr) bareClient {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: address.Port, Addr: [4]byte(address.IP.To4())}); err != nil {
		t.Fatal(err)
	}
	return bareClient(fd)
}

func (c bareClient) ask(t *testing.T, request, want string) {
	t.Helper()
	if _, err := syscall.Write(int(c), []byte(request)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	for have := 0; have < len(want); {
		n, err := syscall.Read(int(c), got[have:])
		if err != nil || n == 0 || string(got[:have+n]) != want[:have+n] {
			t.Fatalf("got %q (%v), want %q", got[:have+max(n, 0)], err, want)
		}
		have += n
	}
}

// A client that locked and is idle takes little memory: it has no stack and no buffer. The
// race detector needs more memory. README gives 5.6 KiB, with what the kernel and the allocator add.
func TestMemoryOfAnIdleClient(t *testing.T) {
	const count, most = 1000, 5 << 10
	p, _ := startWaitingProxy(t, 0)
	address := p.listener.Addr().(*net.TCPAddr)
	arrive := func(count int) {
		for range count {
			c := dialBare(t, address)
			c.ask(t, "SET lock:idle a-token-of-many-bytes NX PX 60000\r\n", "+OK\r\n")
			c.ask(t, "DEL lock:idle\r\n", ":1\r\n")
		}
	}
	inUse := func() int {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	arrive(count / 4)
	before := inUse()
	arrive(count)
	each := 0
	defer func() { t.Logf("%d bytes each", each) }()
	eventually(t, fmt.Sprintf("an idle client takes %d bytes or fewer", most), func() bool { // what else runs ends meanwhile
		each = (inUse() - before) / count
		return each <= most
	})
}
