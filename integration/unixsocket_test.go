package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The proxy is reached by a unix socket, and reaches everybody by one. The file
// that a killed proxy left behind is replaced.
func TestUnixSockets(t *testing.T) {
	dir, err := os.MkdirTemp("", "redlock") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &cluster{}
	socket := filepath.Join(dir, "proxy")
	options := proxyOptions{listen: "unix:" + socket, more: "unix_permissions: 0660\n"}
	start := func(name string) (*redisServer, string) {
		path := filepath.Join(dir, name)
		return startRedis(t, name, "--unixsocket", path), "unix://" + path
	}
	c.upstream, options.upstream = start("upstream")
	for i := range masterCount {
		master, url := start(fmt.Sprintf("master%d", i+1))
		c.masters, options.masters = append(c.masters, master), append(options.masters, url)
	}
	c.proxy = startProxy(t, options)
	cli := func(command string) string {
		return redisCLI(append([]string{"-s", socket}, strings.Fields(command)...)...)
	}
	if got := cli("SET lock:a token NX PX 60000"); got != "OK" {
		t.Fatal(got)
	}
	c.waitHeld(t, "lock:a", "token")
	c.proxy.proc.Kill()
	if _, err := os.Stat(socket); err != nil {
		t.Fatal("no file was left behind, so that there is nothing to replace:", err)
	}
	c.proxy.start(t)
	waitFor(t, "proxy is ready", c.proxy.ready)
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket's permissions are %v, %v", info.Mode(), err)
	}
	for _, row := range []struct{ command, want string }{
		{"SET lock:a other NX PX 60000", ""},
		{"DEL lock:a", "1"},
		{"SET app 1", "OK"},
		{"GET app", "1"},
	} {
		if got := cli(row.command); got != row.want {
			t.Errorf("%s: %q, want %q", row.command, got, row.want)
		}
	}
}
