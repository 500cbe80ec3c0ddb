package faults

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/child"
	"redlock-proxy/integration/layer"
	"redlock-proxy/integration/rig"
)

// takeAndStop takes a lock, asks for large replies that it does not read, and stops itself.
const takeAndStop = `exec 3<>"/dev/tcp/127.0.0.1/$0"
printf 'SET %s token-of-a-stopped-client NX PX 8000\r\n' "$1" >&3
read -r reply <&3
echo "$reply"
for ((i = 0; i < $2; i++)); do printf 'GET large\r\n' >&3; done
kill -STOP $$`

// TestStoppedClient: a client is stopped under a lock that is renewed. If more replies are on
// the way than its buffers take, its window stays closed. Then TCP_USER_TIMEOUT ends the
// connection, and with it the lock. If no reply is on the way, its kernel answers for it, and
// nobody can tell.
func TestStoppedClient(t *testing.T) {
	layer.Only(t, layer.Long, "takes long")
	const rule = "lock:*"
	c := rig.StartCluster(t, rig.Options{MasterTimeout: time.Second, Rules: []string{rule}, RuleMore: map[string]string{rule: "renew: 10m\n    on_disconnect: release"}})
	if err := c.Upstream.Direct.Set(t.Context(), "large", strings.Repeat("x", 1<<20), 0).Err(); err != nil {
		t.Fatal(err)
	}
	for key, replies := range map[string]int{"lock:stuck": 64, "lock:silent": 0} {
		cmd := exec.Command("bash", "-c", takeAndStop, fmt.Sprint(c.Proxy.Port), key, fmt.Sprint(replies))
		child.EndWithParent(cmd)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		if reply, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(reply) != "+OK" {
			t.Fatalf("%s: %q, %v", key, reply, err)
		}
	}
	other := c.Proxy.Client(t)
	taken := func(key string) (bool, error) {
		return rig.Acquire(t.Context(), other, key, "token-of-another-client", time.Second)
	}
	rig.WaitFor(t, "the connection of the client that does not read ends", func() error {
		ok, err := taken("lock:stuck")
		if err == nil && !ok {
			err = fmt.Errorf("its lock is held")
		}
		return err
	})
	if n := c.Proxy.Metric(t, `redlock_lease_releases_total{result="released"}`); n != "1" {
		t.Errorf("%s locks were released, want 1", n)
	}
	if ok, err := taken("lock:silent"); ok || err != nil {
		t.Errorf("the lock of the silent client was taken: %v, %v", ok, err)
	}
}
