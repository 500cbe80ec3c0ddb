package operation

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"redlock-proxy/integration/child"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// TestEmbeddedServersOnlyOnRequest: a missing configuration file ends the program. Embedded
// servers start only if a file or -demo says so, and then the program says that they are
// embedded.
func TestEmbeddedServersOnlyOnRequest(t *testing.T) {
	t.Parallel()
	nowhere := t.TempDir()
	for _, row := range []struct {
		dir  string
		args []string
		code int
		says string
	}{
		{nowhere, nil, 2, "config.yaml does not exist"},
		{nowhere, nil, 2, "-demo"},
		{nowhere, []string{"-new"}, 2, "config.yaml does not exist"},
		{nowhere, []string{"-check"}, 2, "config.yaml does not exist"},
		{nowhere, []string{"-reload"}, 2, "config.yaml does not exist"},
		{nowhere, []string{"-demo", "-config", "config.yaml"}, 2, "-demo reads no configuration"},
		{nowhere, []string{"-demo", "-check"}, 0, "demo: the masters are embedded"},
		{nowhere, []string{"-demo", "-check", "-json"}, 0, `"fine": true`},
		{nowhere, []string{"-help"}, 0, "redlock-proxy -demo "},
		{nowhere, []string{"-move-keys"}, 2, "-move-keys needs -reload"},
		{nowhere, []string{"-json"}, 2, "-all and -json need -check"},
		{"..", []string{"-check"}, 0, "demo: the masters are embedded"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		program := exec.CommandContext(ctx, rig.ProxyBinary, row.args...)
		program.Dir = row.dir
		out, _ := program.CombinedOutput()
		cancel()
		if code := program.ProcessState.ExitCode(); code != row.code || !strings.Contains(string(out), row.says) {
			t.Errorf("%v in %s ended with %d, not %d and %q:\n%s", row.args, row.dir, code, row.code, row.says, out)
		}
	}
}

// TestDemoWithRealServers: -demo says which servers it has started and where the page is. A
// killed master is seen there, and the lock holds. When the proxy is killed, the servers end
// with it. When it is asked to end, nothing is left.
func TestDemoWithRealServers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p, err := child.Start("demo", rig.ProxyBinary, "-demo")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		page, listen, servers := readBanner(t, p)
		if len(servers) != 6 || servers[5][1] != "upstream" {
			t.Fatalf("the servers are %v", servers)
		}
		client := redis.NewClient(&redis.Options{Addr: listen, MaxRetries: -1})
		t.Cleanup(func() { client.Close() })
		waitHealth(t, page, "whole")
		rig.MustAcquire(t, client, "lock:demo", "a-token-of-somebody", rig.LongTTL)
		if err := client.Set(t.Context(), "greeting", "hello", 0).Err(); err != nil {
			t.Error(err)
		}
		master, err := strconv.Atoi(servers[0][3])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(master, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitHealth(t, page, "reduced")
		if ok, err := rig.Acquire(t.Context(), client, "lock:demo", "another-token-of-somebody", rig.LongTTL); ok || err != nil {
			t.Errorf("the lock does not hold: %v %v", ok, err)
		}
		p.Signal(signal)
		<-p.Done
		for _, server := range servers {
			rig.WaitFor(t, server[1]+" ends with the proxy", func() error {
				conn, err := net.Dial("tcp", server[2])
				if err != nil {
					return nil
				}
				conn.Close()
				return fmt.Errorf("something listens on %s", server[2])
			})
		}
		if left, _ := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); signal == syscall.SIGTERM && len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// TestDemoWithoutServers: where no server is installed, -demo says that its servers are
// embedded.
func TestDemoWithoutServers(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	p, err := child.Start("demo", rig.ProxyBinary, "-demo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	page, _, servers := readBanner(t, p)
	waitHealth(t, page, "whole")
	if len(servers) > 0 || !strings.Contains(p.Log.String(), "DEMO: the embedded servers run inside this process") {
		t.Errorf("it says\n%s", p.Log.String())
	}
	if code, err := p.Stop(rig.Patience); code != 0 || err != nil {
		t.Errorf("it ends with %d, %v", code, err)
	}
}

var (
	pageLine   = regexp.MustCompile(`(?m)^  page +(http://\S+)`)
	listenLine = regexp.MustCompile(`(?m)^  listening on +(\S+)`)
	serverLine = regexp.MustCompile(`(?m)^  (master \d|upstream) +(127\.0\.0\.1:\d+)  process (\d+)$`)
)

// readBanner waits for the banner of -demo. Each of the servers is a match of serverLine.
func readBanner(t *testing.T, p *child.Process) (page, listen string, servers [][]string) {
	t.Helper()
	rig.WaitFor(t, "the demo says what it serves", func() error {
		text := p.Log.String()
		if !strings.Contains(text, "msg=serving") {
			return fmt.Errorf("it says\n%s", text)
		}
		return nil
	})
	text := p.Log.String()
	found, at := pageLine.FindStringSubmatch(text), listenLine.FindStringSubmatch(text)
	if found == nil || at == nil {
		t.Fatalf("it says\n%s", text)
	}
	return found[1], at[1], serverLine.FindAllStringSubmatch(text, -1)
}

// waitHealth waits until the page's facts show a health.
func waitHealth(t *testing.T, page, want string) {
	t.Helper()
	rig.WaitFor(t, "the health is "+want, func() error {
		response, err := http.Get(page + "status.json")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		var status struct{ Health string }
		if err := json.NewDecoder(response.Body).Decode(&status); err != nil || status.Health != want {
			return fmt.Errorf("it is %q: %v", status.Health, err)
		}
		return nil
	})
}
