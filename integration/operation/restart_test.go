package operation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"redlock-proxy/integration/rig"
)

// TestRestartsThatNobodyNotices restarts the proxy ten times as the handbook says: a new process
// listens on the same address and is ready, then the old one ends. The old one is stopped for a
// moment before, so that many clients wait in its accept queue. All the time clients connect, lock,
// release and leave. No connection is refused. None is broken within its first second, if the kernel
// gives those in the queue to the new process (net.ipv4.tcp_migrate_req, which only root can set).
func TestRestartsThatNobodyNotices(t *testing.T) {
	t.Parallel()
	setting, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_migrate_req")
	migrates := strings.TrimSpace(string(setting)) == "1"
	c := rig.StartServers(t)
	old := c.AddProxy(t, rig.Options{RestartDelay: 4 * time.Second, LogLevel: "info", More: "reuse_port: yes\n"})
	clients := &shortClients{t: t, address: old.Addr(), migrates: migrates}
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	for i := range 16 {
		working.Go(func() {
			for turn := 0; ctx.Err() == nil; turn++ {
				clients.lock(fmt.Sprintf("lock:%d-%d", i, turn))
			}
		})
	}
	goesOn := func() {
		t.Helper()
		before := clients.served.Load()
		rig.WaitFor(t, "clients lock", func() error {
			if n := clients.served.Load() - before; n < 100 {
				return fmt.Errorf("%d times since", n)
			}
			return nil
		})
	}
	const restarts, queue = 10, 64
	for restart := range restarts {
		next := old.Beside(t)
		rig.WaitFor(t, "the new process is ready", next.Ready)
		goesOn()
		old.Proc.Signal(syscall.SIGSTOP)
		connected := clients.connected.Load()
		for i := range queue {
			working.Go(func() { clients.lock(fmt.Sprintf("lock:queue-%d-%d", restart, i)) })
		}
		rig.WaitFor(t, "clients wait", func() error {
			if n := clients.connected.Load() - connected; n < queue {
				return fmt.Errorf("%d of %d are connected", n, queue)
			}
			return nil
		})
		old.Proc.Signal(syscall.SIGTERM)
		old.Proc.Signal(syscall.SIGCONT)
		select {
		case <-old.Proc.Done:
		case <-time.After(rig.Patience):
			t.Fatal("the old process did not end after SIGTERM")
		}
		old.Finish(t)
		goesOn()
		old = next
	}
	// A reload finds the process at its own admin address, and does not move it to the file's.
	if out, err := exec.Command(old.Binary, "-reload", "-config", old.Flags[1], "-admin", fmt.Sprintf("127.0.0.1:%d", old.Admin)).CombinedOutput(); err != nil {
		t.Errorf("-reload -admin: %v\n%s", err, out)
	}
	stop()
	working.Wait()
	if !migrates {
		t.Log("net.ipv4.tcp_migrate_req is not 1, so clients that were broken are only counted")
	}
	t.Logf("%d restarts, %d sessions: %d refused, %d broken within a second, %d drained later, %d times QUORUMLOST", restarts,
		clients.served.Load(), clients.refused.Load(), clients.broken.Load(), clients.drained.Load(), clients.undecided.Load())
}

// shortClients connect, lock, release and leave, as PHP does for each request.
type shortClients struct {
	t        *testing.T
	address  string
	migrates bool // the kernel gives waiting connections to the new process

	connected, served                   atomic.Int64
	refused, broken, drained, undecided atomic.Int64
}

// lock does that once.
func (c *shortClients) lock(key string) {
	conn, err := net.DialTimeout("tcp", c.address, rig.Patience)
	if errors.Is(err, syscall.ECONNRESET) && !c.migrates { // it waited for the old process
		c.broken.Add(1)
		return
	}
	if err != nil {
		c.refused.Add(1)
		c.t.Errorf("a client was refused: %v", err)
		return
	}
	defer conn.Close()
	since := time.Now()
	c.connected.Add(1)
	w := &rig.Wire{Conn: conn, In: bufio.NewReader(conn)}
	for _, step := range []struct {
		command []string
		want    string
	}{
		{[]string{"SET", key, "token-of-a-short-session", "NX", "PX", "60000"}, "+OK\r\n"},
		{[]string{"DEL", key}, ":1\r\n"},
	} {
		reply, err := w.Do(step.command...)
		switch age := time.Since(since); {
		case err != nil && age > time.Second: // the old process has drained: the machine is slow
			c.drained.Add(1)
			return
		case err != nil:
			if c.broken.Add(1); c.migrates {
				c.t.Errorf("a client was disconnected %v after it had connected: %s: %v", age, step.command[0], err)
			}
			return
		case strings.HasPrefix(string(reply), "-QUORUMLOST "):
			c.undecided.Add(1)
			return
		case string(reply) != step.want:
			c.t.Errorf("%s %s: %q", step.command[0], key, reply)
			return
		}
	}
	c.served.Add(1)
}
