package proxy

import (
	"net"
	"os"
	"strings"
	"testing"

	"redlock-proxy/proxy/wire"
)

// listedClient returns the fields of the first line of CLIENT LIST with a client of this name,
// and their names in order.
func listedClient(t *testing.T, list, name string) (fields map[string]string, order []string) {
	t.Helper()
	for line := range strings.Lines(list) {
		if !strings.Contains(line, " name="+name+" ") {
			continue
		}
		fields = map[string]string{}
		for _, field := range strings.Fields(line) {
			key, value, _ := strings.Cut(field, "=")
			fields[key] = value
			order = append(order, key)
		}
		return fields, order
	}
	t.Fatalf("%s is not in %q", name, list)
	return nil, nil
}

// lookAt asks another connection for the line of the client with this name.
func lookAt(t *testing.T, other *testClient, name string) (fields map[string]string, order []string) {
	t.Helper()
	other.send("CLIENT LIST\r\n")
	return listedClient(t, other.values(1), name)
}

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
	if fields, _ := lookAt(t, conn, "me"); fields["addr"] != path+":0" || fields["laddr"] != path+":0" {
		t.Errorf("it is shown as %q", fields)
	}
}
