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

	"redlock-proxy/integration/child"

	"github.com/redis/go-redis/v9"
)

// proxyOptions is the part of the proxy's configuration that tests vary.
// The zero value is what most of them want.
type proxyOptions struct {
	binary        string // "": the one with the race detector
	upstream      string // "": the cluster's
	listen        string // "": a port of the loopback
	masters       []string
	masterTimeout time.Duration // 0: generous, for machines under load
	retryCount    int           // 0: 3
	retryDelay    time.Duration // 0: 20ms
	restartDelay  time.Duration // 0: 5s
	maxQuarantine time.Duration // 0: the proxy's default
	notNew        bool          // start without -new: the masters may hold locks
	logLevel      string        // "": debug
	rules         []string      // nil: lockRules
	more          string        // further lines of the file
}

// proxyProcess is the binary under test.
type proxyProcess struct {
	port   int
	admin  int
	listen string // where, if not on the port
	proc   *child.Process
	binary string
	flags  []string
}

// lockRules is what the tests' configuration calls a lock key. lockKey in
// scenario_test.go says the same.
var lockRules = []string{"lock:*", "*_LOCK", "lock-signal:*", "*redisson_*", "{lock:*"}

func (o proxyOptions) yaml(listen, admin int) string {
	timeout := cmp.Or(o.masterTimeout, 2*time.Second)
	retries, delay := cmp.Or(o.retryCount, 3), cmp.Or(o.retryDelay, 20*time.Millisecond)
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nadmin: 127.0.0.1:%d\nupstream: %s\nmasters:\n", cmp.Or(o.listen, fmt.Sprintf("127.0.0.1:%d", listen)), admin, o.upstream)
	for _, master := range o.masters {
		fmt.Fprintf(&b, "  - %s\n", master)
	}
	b.WriteString("locks:\n")
	rules := o.rules
	if rules == nil {
		rules = lockRules
	}
	for _, rule := range rules {
		fmt.Fprintf(&b, "  - match: %q\n", rule)
	}
	fmt.Fprintf(&b, "master_timeout: %s\nretry: {count: %d, delay: %s}\n", timeout, retries, delay)
	fmt.Fprintf(&b, "restart_delay: %s\n", cmp.Or(o.restartDelay, 5*time.Second))
	if o.maxQuarantine > 0 {
		fmt.Fprintf(&b, "max_quarantine: %s\n", o.maxQuarantine)
	}
	b.WriteString(o.more)
	fmt.Fprintf(&b, "log: {level: %s, format: text}\n", cmp.Or(o.logLevel, "debug"))
	return b.String()
}

// startProxy starts the binary, waits until it is ready, and when the test
// ends stops it and requires exit code 0 and no data race.
func startProxy(t testing.TB, options proxyOptions) *proxyProcess {
	t.Helper()
	p := newProxy(t, options)
	waitFor(t, "proxy is ready", func() error {
		if !p.proc.Running() {
			t.Fatalf("the proxy ended:\n%s", p.proc.Log.Tail(50))
		}
		return p.ready()
	})
	return p
}

// newProxy is startProxy, but does not wait until the proxy is ready.
func newProxy(t testing.TB, options proxyOptions) *proxyProcess {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yaml")
	p := &proxyProcess{
		port: freePort(t), admin: freePort(t),
		listen: options.listen, binary: cmp.Or(options.binary, proxyBinary), flags: []string{"-config", config},
	}
	if !options.notNew {
		p.flags = append(p.flags, "-new")
	}
	p.configure(t, options)
	p.start(t)
	t.Cleanup(func() { p.finish(t) })
	return p
}

// configure writes the file that the proxy reads when it starts and when it
// is told to.
func (p *proxyProcess) configure(t testing.TB, options proxyOptions) {
	t.Helper()
	if err := os.WriteFile(p.flags[1], []byte(options.yaml(p.port, p.admin)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs the process, on the same ports each time. Its log goes on where
// that of the one before ended.
func (p *proxyProcess) start(t testing.TB) {
	t.Helper()
	var before string
	if p.proc != nil {
		before = p.proc.Log.String()
	}
	proc, err := child.Start("proxy", p.binary, p.flags...)
	if err != nil {
		t.Fatal(err)
	}
	proc.Log.Prepend(before)
	p.proc = proc
}

// lives tells whether it has come so far as to answer, ready or not.
func (p *proxyProcess) lives() bool {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", p.admin))
	if err != nil {
		return false
	}
	answer.Body.Close()
	return true
}

func (p *proxyProcess) ready() error {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", p.admin))
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.proc.Log.Tail(50))
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s\n%s", answer.Status, p.proc.Log.Tail(50))
	}
	network, address := "tcp", p.addr()
	if path, isUnix := strings.CutPrefix(p.listen, "unix:"); isUnix {
		network, address = "unix", path
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (p *proxyProcess) addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// finish stops the proxy and checks how it went.
func (p *proxyProcess) finish(t testing.TB) {
	code, err := p.proc.Stop(patience)
	if err != nil || code != 0 {
		t.Errorf("the proxy ended with code %d, want 0 (%v)", code, err)
	}
	log := p.proc.Log.String()
	if at := strings.Index(log, "WARNING: DATA RACE"); at >= 0 {
		t.Errorf("data race in the proxy:\n%.6000s", log[at:])
	}
	if at := strings.Index(log, "panic:"); at >= 0 {
		t.Errorf("panic in the proxy:\n%.6000s", log[at:])
	}
	if t.Failed() {
		t.Logf("the proxy's last lines:\n%s", p.proc.Log.Tail(30))
	}
}

// client is an unmodified go-redis client of the proxy.
func (p *proxyProcess) client(t testing.TB) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: p.addr(), MaxRetries: -1, ReadTimeout: patience, PoolSize: 100})
	t.Cleanup(func() { client.Close() })
	return client
}
