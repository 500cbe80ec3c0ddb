package integration

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// proxyOptions is the part of the proxy's configuration that tests vary.
// The zero value is what most of them want.
type proxyOptions struct {
	binary        string // "": the one with the race detector
	upstream      string // "": the cluster's
	masters       []string
	masterTimeout time.Duration // 0: generous, for machines under load
	retryCount    int           // 0: 3
	logLevel      string        // "": debug
}

// proxyProcess is the binary under test.
type proxyProcess struct {
	port  int
	admin int
	proc  *process
}

// lockRules is what the tests' configuration calls a lock key. lockKey in
// scenario_test.go says the same.
var lockRules = []string{"lock:*", "*_LOCK", "lock-signal:*", "*redisson_*", "{lock:*"}

func (o proxyOptions) yaml(listen, admin int) string {
	timeout, retries := cmp.Or(o.masterTimeout, 2*time.Second), cmp.Or(o.retryCount, 3)
	var b strings.Builder
	fmt.Fprintf(&b, "listen: 127.0.0.1:%d\nadmin: 127.0.0.1:%d\nupstream: %s\nmasters:\n", listen, admin, o.upstream)
	for _, master := range o.masters {
		fmt.Fprintf(&b, "  - %s\n", master)
	}
	b.WriteString("locks:\n")
	for _, rule := range lockRules {
		fmt.Fprintf(&b, "  - match: %q\n", rule)
	}
	fmt.Fprintf(&b, "master_timeout: %s\nretry: {count: %d, delay: 20ms}\n", timeout, retries)
	b.WriteString("restart_delay: 5s\n")
	fmt.Fprintf(&b, "log: {level: %s, format: text}\n", cmp.Or(o.logLevel, "debug"))
	return b.String()
}

// startProxy starts the binary, waits until it is ready, and when the test
// ends stops it and requires exit code 0 and no data race.
func startProxy(t testing.TB, options proxyOptions) *proxyProcess {
	t.Helper()
	p := &proxyProcess{port: freePort(t), admin: freePort(t)}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(options.yaml(p.port, p.admin)), 0o600); err != nil {
		t.Fatal(err)
	}
	proc, err := startProcess("proxy", cmp.Or(options.binary, proxyBinary), "-config", path)
	if err != nil {
		t.Fatal(err)
	}
	p.proc = proc
	t.Cleanup(func() { p.finish(t) })
	waitFor(t, "proxy is ready", func() error {
		if !proc.running() {
			t.Fatalf("the proxy ended:\n%s", proc.log.tail(50))
		}
		return p.ready()
	})
	return p
}

func (p *proxyProcess) ready() error {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", p.admin))
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.proc.log.tail(50))
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s\n%s", answer.Status, p.proc.log.tail(50))
	}
	conn, err := net.Dial("tcp", p.addr())
	if err != nil {
		return err
	}
	return conn.Close()
}

func (p *proxyProcess) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// finish stops the proxy and checks how it went.
func (p *proxyProcess) finish(t testing.TB) {
	code, err := p.proc.stop()
	if err != nil || code != 0 {
		t.Errorf("the proxy ended with code %d, want 0 (%v)", code, err)
	}
	log := p.proc.log.String()
	if at := strings.Index(log, "WARNING: DATA RACE"); at >= 0 {
		t.Errorf("data race in the proxy:\n%.6000s", log[at:])
	}
	if at := strings.Index(log, "panic:"); at >= 0 {
		t.Errorf("panic in the proxy:\n%.6000s", log[at:])
	}
	if t.Failed() {
		t.Logf("the proxy's last lines:\n%s", p.proc.log.tail(30))
	}
}

// client is an unmodified go-redis client of the proxy.
func (p *proxyProcess) client(t testing.TB) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: p.addr(), MaxRetries: -1, ReadTimeout: patience, PoolSize: 100})
	t.Cleanup(func() { client.Close() })
	return client
}
