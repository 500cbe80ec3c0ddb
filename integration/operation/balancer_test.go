package operation

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/child"
	"redlock-proxy/integration/rig"

	"github.com/redis/go-redis/v9"
)

// handbookBalancer returns HAProxy's configuration from the handbook, with these addresses in
// place of the handbook's.
func handbookBalancer(t *testing.T, port int, proxies ...*rig.Proxy) string {
	t.Helper()
	_, text, found := strings.Cut(rig.ReadFile(t, "../deploy/INSTALL.md"), "\n    defaults\n")
	text, _, closed := strings.Cut(text, "\n\n")
	if !found || !closed {
		t.Fatal("the handbook has no configuration for HAProxy")
	}
	text = regexp.MustCompile(`bind :6380`).ReplaceAllString("defaults\n"+text, fmt.Sprintf("bind 127.0.0.1:%d", port))
	text = strings.Replace(text, " port 9380", "", 1)
	named := 0
	text = regexp.MustCompile(`(server proxy\d) [0-9.]+:6380`).ReplaceAllStringFunc(text, func(line string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "server "), " ")
		p := proxies[named%len(proxies)]
		named++
		return fmt.Sprintf("server %s %s port %d", name, p.Addr(), p.Admin)
	})
	if named != len(proxies) {
		t.Fatalf("the handbook's HAProxy knows %d proxies", named)
	}
	return text + "\n"
}

// startBalancer starts HAProxy and returns a client that reaches the proxies through it. The client
// connects anew for each try.
func startBalancer(t *testing.T, port int, text string) *redis.Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	balancer, err := child.Start("haproxy", "/usr/sbin/haproxy", "-db", "-f", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		balancer.Kill()
		if t.Failed() {
			t.Logf("haproxy's last lines:\n%s", balancer.Log.Tail(20))
		}
	})
	client := redis.NewClient(&redis.Options{Addr: child.Loopback(port), MaxRetries: -1, DialerRetries: 1, PoolSize: 4, ReadTimeout: rig.Patience})
	t.Cleanup(func() { client.Close() })
	rig.WaitFor(t, "the balancer passes commands on", func() error { return client.Ping(t.Context()).Err() })
	return client
}

// TestBalancerKeepsTheUpstream: behind HAProxy, configured as the handbook says, clients go on
// when a proxy ends, and a lock taken through it is released through the other one. Without a
// quorum, they hear QUORUMLOST for locks and still reach the upstream. A balancer that asks
// /readyz then cuts them off.
func TestBalancerKeepsTheUpstream(t *testing.T) {
	t.Parallel()
	rig.Need(t, rig.HAProxy)
	c := rig.StartServers(t)
	options := rig.Options{MasterTimeout: 500 * time.Millisecond, RetryCount: 1}
	first, second := c.AddProxy(t, options), c.AddProxy(t, options)
	port, wrongPort := rig.FreePort(t), rig.FreePort(t)
	text := handbookBalancer(t, port, first, second)
	client := startBalancer(t, port, text)
	wrong := strings.Replace(handbookBalancer(t, wrongPort, first, second), "/healthz", "/readyz", 1)
	asksReadyz := startBalancer(t, wrongPort, wrong)

	rig.MustAcquire(t, client, "lock:balanced", "token-of-a-balanced-client", rig.LongTTL)
	first.Proc.Kill()
	rig.WaitFor(t, "the lock is released through the other proxy", func() error {
		released, err := rig.Release(t.Context(), client, "lock:balanced", "token-of-a-balanced-client")
		if err == nil && !released {
			t.Fatal("the lock is lost")
		}
		return err
	})
	first.Start(t)
	rig.WaitFor(t, "the first proxy is back", first.Ready)

	for _, master := range c.Masters[:3] {
		master.Kill()
	}
	for _, p := range []*rig.Proxy{first, second} {
		for _, master := range c.Masters[:3] {
			p.WaitState(t, master, "unreachable")
		}
		if p.Ready() == nil {
			t.Error("a proxy is ready without a quorum")
		}
	}
	rig.WaitFor(t, "a balancer that asks /readyz has cut everybody off", func() error {
		if err := asksReadyz.Set(t.Context(), "greeting", "hello", 0).Err(); err == nil {
			return fmt.Errorf("it has not")
		}
		return nil
	})
	rig.WaitFor(t, "the other balancer knows both proxies as well", func() error { return client.Ping(t.Context()).Err() })
	for range 4 {
		if err := client.Set(t.Context(), "greeting", "hello", 0).Err(); err != nil {
			t.Errorf("without a quorum the upstream is not reached: %v", err)
		}
		if _, err := rig.Acquire(t.Context(), client, "lock:balanced", "token-of-a-balanced-client", rig.LongTTL); !rig.NoQuorum(err) {
			t.Errorf("without a quorum a lock is answered %v", err)
		}
	}
}
