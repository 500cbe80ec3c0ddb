package operation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redlock-proxy/integration/rig"
)

// The proxy listens on a unix socket and reaches every server by one. It replaces the
// socket file that a killed proxy left behind.
func TestUnixSockets(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "redlock") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c := &rig.Cluster{}
	socket := filepath.Join(dir, "proxy")
	options := rig.Options{Listen: "unix:" + socket, More: "unix_permissions: 0660\n"}
	start := func(name string) (*rig.Server, string) {
		path := filepath.Join(dir, name)
		return rig.StartServer(t, name, "--unixsocket", path), "unix://" + path
	}
	c.Upstream, options.Upstream = start("upstream")
	for i := range rig.MasterCount {
		master, url := start(fmt.Sprintf("master%d", i+1))
		c.Masters, options.Masters = append(c.Masters, master), append(options.Masters, url)
	}
	c.Proxy = rig.StartProxy(t, options)
	cli := func(command string) string {
		return rig.RedisCLI(append([]string{"-s", socket}, strings.Fields(command)...)...)
	}
	if got := cli("SET lock:a token NX PX 60000"); got != "OK" {
		t.Fatal(got)
	}
	c.WaitHeld(t, "lock:a", "token")
	c.Proxy.Proc.Kill()
	if _, err := os.Stat(socket); err != nil {
		t.Fatal("no file was left behind, so that there is nothing to replace:", err)
	}
	c.Proxy.Start(t)
	rig.WaitFor(t, "proxy is ready", c.Proxy.Ready)
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
