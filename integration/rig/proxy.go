package rig

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"redlock-proxy/integration/child"

	"github.com/redis/go-redis/v9"
)

// Options is the part of the proxy's configuration that tests vary. Most tests want the
// zero value.
type Options struct {
	Binary        string // "": the one with the race detector
	Upstream      string // "": the cluster's
	Listen        string // "": a port of the loopback
	Masters       []string
	MasterTimeout time.Duration     // 0: 5s, enough for a machine under load; but 2s if RestartDelay is given
	RetryCount    int               // 0: 3
	RetryDelay    time.Duration     // 0: 20ms
	RestartDelay  time.Duration     // 0: twice MasterTimeout, and 5s at least
	MaxQuarantine time.Duration     // 0: the proxy's default
	NotNew        bool              // start without -new: the masters may hold locks
	LogLevel      string            // "": debug
	Rules         []string          // nil: LockRules
	Learn         bool              // no rules, but locks: learn; without Masters, if there are none
	RuleMore      map[string]string // one more line for a rule, such as "wait: 2s"
	More          string            // more lines of the configuration file
}

// Proxy is the binary under test.
type Proxy struct {
	Port   int
	Admin  int
	listen string // the listen address; "": Port on the loopback
	Proc   *child.Process
	Binary string
	Flags  []string
}

// LockRules are the lock rules of the tests' configuration. lockKey must agree with them.
var LockRules = []string{"lock:*", "*_LOCK", "lock-signal:*", "*redisson_*", "{lock:*"}

func (o Options) yaml(listen, admin int) string {
	timeout := cmp.Or(o.MasterTimeout, 5*time.Second)
	if o.MasterTimeout == 0 && o.RestartDelay > 0 {
		timeout = 2 * time.Second
	}
	retries, delay := cmp.Or(o.RetryCount, 3), cmp.Or(o.RetryDelay, 20*time.Millisecond)
	var b strings.Builder
	fmt.Fprintf(&b, "listen: %s\nadmin: 127.0.0.1:%d\nupstream: %s\n", cmp.Or(o.Listen, fmt.Sprintf("127.0.0.1:%d", listen)), admin, o.Upstream)
	if !o.Learn || len(o.Masters) > 0 {
		b.WriteString("masters:\n")
	}
	for _, master := range o.Masters {
		fmt.Fprintf(&b, "  - %s\n", master)
	}
	rules := o.Rules
	if rules == nil {
		rules = LockRules
	}
	if b.WriteString("locks:"); o.Learn {
		rules = nil
		b.WriteString(" learn")
	}
	b.WriteString("\n")
	for _, rule := range rules {
		fmt.Fprintf(&b, "  - match: %q\n", rule)
		if more := o.RuleMore[rule]; more != "" {
			fmt.Fprintf(&b, "    %s\n", more)
		}
	}
	fmt.Fprintf(&b, "master_timeout: %s\nretry: {count: %d, delay: %s}\n", timeout, retries, delay)
	fmt.Fprintf(&b, "restart_delay: %s\n", cmp.Or(o.RestartDelay, max(5*time.Second, 2*timeout)))
	if o.MaxQuarantine > 0 {
		fmt.Fprintf(&b, "max_quarantine: %s\n", o.MaxQuarantine)
	}
	b.WriteString(o.More)
	fmt.Fprintf(&b, "log: {level: %s, format: text}\n", cmp.Or(o.LogLevel, "debug"))
	return b.String()
}

// StartProxy starts the binary and waits until it is ready. When the test ends, it stops
// the proxy and requires exit code 0 and no data race.
func StartProxy(t testing.TB, options Options) *Proxy {
	t.Helper()
	p := NewProxy(t, options)
	WaitFor(t, "proxy is ready", func() error {
		if !p.Proc.Running() {
			t.Fatalf("the proxy ended:\n%s", p.Proc.Log.Tail(50))
		}
		return p.Ready()
	})
	return p
}

// NewProxy is StartProxy, but does not wait until the proxy is ready.
func NewProxy(t testing.TB, options Options) *Proxy {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config.yaml")
	p := &Proxy{
		Port: FreePort(t), Admin: FreePort(t),
		listen: options.Listen, Binary: cmp.Or(options.Binary, ProxyBinary), Flags: []string{"-config", config},
	}
	if !options.NotNew {
		p.Flags = append(p.Flags, "-new")
	}
	p.Configure(t, options)
	p.Start(t)
	t.Cleanup(func() { p.Finish(t) })
	return p
}

// Beside starts another process with the same file, and an admin address of its own. The file
// must say reuse_port: yes.
func (p *Proxy) Beside(t testing.TB) *Proxy {
	t.Helper()
	q := *p
	q.Admin, q.Proc = FreePort(t), nil
	q.Flags = append(slices.Clone(p.Flags), "-admin", fmt.Sprintf("127.0.0.1:%d", q.Admin))
	q.Start(t)
	t.Cleanup(func() { q.Finish(t) })
	return &q
}

// Configure writes the proxy's configuration file. The proxy reads it at its start and at
// a reload.
func (p *Proxy) Configure(t testing.TB, options Options) {
	t.Helper()
	if err := os.WriteFile(p.Flags[1], []byte(options.yaml(p.Port, p.Admin)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Start starts the process, on the same ports each time. The log of an earlier process
// stays in front of the new one's.
func (p *Proxy) Start(t testing.TB) {
	t.Helper()
	var before string
	if p.Proc != nil {
		before = p.Proc.Log.String()
	}
	proc, err := child.Start("proxy", p.Binary, p.Flags...)
	if err != nil {
		t.Fatal(err)
	}
	proc.Log.Prepend(before)
	p.Proc = proc
}

// Lives tells whether the proxy answers on its admin port, ready or not.
func (p *Proxy) Lives() bool {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", p.Admin))
	if err != nil {
		return false
	}
	answer.Body.Close()
	return true
}

func (p *Proxy) Ready() error {
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz", p.Admin))
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.Proc.Log.Tail(50))
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s\n%s", answer.Status, p.Proc.Log.Tail(50))
	}
	network, address := "tcp", p.Addr()
	if path, isUnix := strings.CutPrefix(p.listen, "unix:"); isUnix {
		network, address = "unix", path
	}
	conn, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (p *Proxy) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)) }

// Finish stops the proxy. It fails the test after a bad exit code, a data race or a panic.
func (p *Proxy) Finish(t testing.TB) {
	code, err := p.Proc.Stop(Patience)
	if err != nil || code != 0 {
		t.Errorf("the proxy ended with code %d, want 0 (%v)", code, err)
	}
	log := p.Proc.Log.String()
	if at := strings.Index(log, "WARNING: DATA RACE"); at >= 0 {
		t.Errorf("data race in the proxy:\n%.20000s", log[at:])
	}
	if at := strings.Index(log, "panic:"); at >= 0 {
		t.Errorf("panic in the proxy:\n%.20000s", log[at:])
	}
	if t.Failed() {
		t.Logf("the proxy's last lines:\n%s", p.Proc.Log.Tail(30))
	}
}

// Client is an unmodified go-redis client of the proxy.
func (p *Proxy) Client(t testing.TB) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, ReadTimeout: Patience, PoolSize: 100})
	t.Cleanup(func() { client.Close() })
	return client
}

// lockKey tells whether LockRules match the key.
func lockKey(key string) bool {
	return strings.HasPrefix(key, "lock:") || strings.HasSuffix(key, "_LOCK") ||
		strings.HasPrefix(key, "lock-signal:") || strings.Contains(key, "redisson_") ||
		strings.HasPrefix(key, "{lock:")
}

// Unruled returns the patterns of REDLOCK UNRULED: keys that look like locks and match no rule.
func (p *Proxy) Unruled(t testing.TB) (patterns []string) {
	t.Helper()
	list, err := p.Client(t).Do(t.Context(), "REDLOCK", "UNRULED").Slice()
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range list {
		fields, _ := found.(map[any]any)
		pattern, _ := fields["pattern"].(string)
		if rule, want := fields["rule"], "- match: '"+pattern+"'"; !strings.HasPrefix(fmt.Sprint(rule), want) {
			t.Errorf("the rule of %q is %v", pattern, rule)
		}
		patterns = append(patterns, pattern)
	}
	return patterns
}
