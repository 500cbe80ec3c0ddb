package proxy

import (
	"net"
	"os"
	"strings"
	"testing"

	"redlock-proxy/proxy/wire"
)

// A client over a Unix socket has the socket's path as both addresses, as in Redis.
func TestClientListOverUnixSocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "clients") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := dir + "/s"
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	p := startTestProxy(t, nil)
	conn := dialTest(t, "unix", path)
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.clients.Welcome(accepted)
	_ = listener.Close()
	conn.ask("CLIENT SETNAME me\r\n", wire.OK)
	conn.send("CLIENT INFO\r\n")
	if info := conn.values(1); !strings.Contains(info, " addr="+path+":0 laddr="+path+":0 ") {
		t.Errorf("it is shown as %q", info)
	}
}
