package proxy

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/command"
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
)

// patience is how long tests wait for what must happen: far beyond what a busy
// machine needs.
const patience = time.Minute

// fakeLocks is a lock plane that is one map. Some keys are special: lock:slow
// waits until the client goes or release is closed, lock:panic panics.
type fakeLocks struct {
	mu       sync.Mutex
	values   map[string]string
	calls    []string
	dbs      []int                // of calls
	ends     map[string]time.Time // of values; others have no end
	stale    bool
	entered  chan struct{} // one for each slow command begun
	left     chan struct{} // one for each slow command that ended with its client
	released chan struct{}
}

func newFakeLocks() *fakeLocks {
	return &fakeLocks{
		values:  make(map[string]string),
		entered: make(chan struct{}, 100), left: make(chan struct{}, 100), released: make(chan struct{}),
	}
}

func (f *fakeLocks) do(ctx context.Context, dst []byte, call lockCall) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.dbs = append(f.calls, string(bytes.Join(call.args, []byte(" ")))), append(f.dbs, call.db)
	var first string
	if len(call.args) > 1 {
		first = string(call.args[1])
	}
	switch first {
	case "lock:panic":
		panic("made for the test")
	case "lock:slow":
		f.mu.Unlock()
		f.entered <- struct{}{}
		select {
		case <-ctx.Done():
			f.left <- struct{}{}
		case <-f.released:
		}
		f.mu.Lock()
		return append(dst, wire.OK...)
	}
	switch name := strings.ToLower(string(call.args[0])); name {
	case "set":
		if _, held := f.values[first]; held {
			return wire.AppendNull(dst, call.version)
		}
		f.values[first] = string(call.args[2])
		return append(dst, wire.OK...)
	case "get":
		if value, held := f.values[first]; held {
			return redcon.AppendBulkString(dst, value)
		}
		return wire.AppendNull(dst, call.version)
	case "pttl":
		if _, held := f.values[first]; !held {
			return append(dst, ":-2\r\n"...)
		}
		if end, ends := f.ends[first]; ends {
			return redcon.AppendInt(dst, time.Until(end).Milliseconds())
		}
		return append(dst, ":-1\r\n"...)
	case "mget":
		dst = redcon.AppendArray(dst, len(call.args)-1)
		for _, key := range call.args[1:] {
			if value, held := f.values[string(key)]; held {
				dst = redcon.AppendBulkString(dst, value)
			} else {
				dst = wire.AppendNull(dst, call.version)
			}
		}
		return dst
	case "del", "unlink", "exists", "touch":
		var n int64
		for _, key := range call.args[1:] {
			if _, held := f.values[string(key)]; held {
				n++
			}
			if name == "del" || name == "unlink" {
				delete(f.values, string(key))
			}
		}
		return redcon.AppendInt(dst, n)
	case "script":
		return append(dst, wire.OK...)
	}
	return append(dst, "-ERR the test has no such lock command\r\n"...)
}

// look and execute: a transaction runs if no watched key was named lock:stale.
func (f *fakeLocks) look(_ context.Context, _ int, keys [][]byte) (*redlock.Watch, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, key := range keys {
		f.stale = f.stale || string(key) == "lock:stale"
		if string(key) == "lock:noquorum" {
			return nil, "-QUORUMLOST\r\n"
		}
	}
	return &redlock.Watch{}, ""
}

func (f *fakeLocks) execute(ctx context.Context, dst []byte, t lockTransaction) []byte {
	if len(t.watches) > 0 && f.stale {
		return append(dst, "*-1\r\n"...)
	}
	dst = redcon.AppendArray(dst, len(t.commands))
	for _, call := range t.commands {
		if name := call.commandName(); name == "ping" {
			dst = append(dst, wire.Pong...)
			continue
		}
		dst = f.do(ctx, dst, call)
	}
	return dst
}

func (f *fakeLocks) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

type testProxy struct {
	address string
	server  *proxyServer
	locks   *fakeLocks
	current *config.Active
	metrics *prometheus.Registry
}

// testConfig is what a test may change before its proxy starts.
type testConfig struct {
	serverConfig
	config.Settings
}

// startTestProxy runs sessions in front of a Redis server, or of none.
func startTestProxy(t *testing.T, redis *proxytest.Redis, configure ...func(*testConfig)) *testProxy {
	t.Helper()
	registry := prometheus.NewRegistry()
	meter, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	routes := &route.Router{Table: command.Builtin(), Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB}}}
	locks := newFakeLocks()
	setup := testConfig{
		serverConfig: serverConfig{
			locks:   locks,
			scripts: newScriptCache(1 << 20),
			metrics: meter,
			log:     slog.New(slog.DiscardHandler),
		},
		Settings: config.Settings{Config: config.Demo(), Users: config.NewAccounts(config.Auth{May: config.RightBoth}, 0), Limits: config.DefaultLimits(), Router: routes},
	}
	if redis != nil {
		setup.DialUpstream = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", redis.Socket)
		}
	}
	for _, change := range configure {
		change(&setup)
	}
	setup.current = config.NewActive(&setup.Settings)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &testProxy{address: listener.Addr().String(), server: newServer(setup.serverConfig), locks: locks, current: setup.current, metrics: registry}
	ended := make(chan error, 1)
	go func() { ended <- p.server.serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.server.shutdown(ctx); err != nil {
			t.Errorf("the server did not drain: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return p
}

// change has other settings hold from now on, as a reload does.
func (p *testProxy) change(change func(*config.Settings)) {
	p.current.Replace(func(old config.Settings) config.Settings {
		change(&old)
		return old
	})
}

// A testClient speaks raw bytes.
type testClient struct {
	net.Conn
	t *testing.T
}

func dialTest(t *testing.T, network, address string) *testClient {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &testClient{conn, t}
}

func (p *testProxy) dial(t *testing.T) *testClient {
	t.Helper()
	return dialTest(t, "tcp", p.address)
}

func (c *testClient) send(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// expect reads exactly the wanted bytes.
func (c *testClient) expect(want string) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	if string(got[:n]) != want {
		c.t.Fatalf("got %q (%v), want %q", got[:n], err, want)
	}
}

// ask sends and expects.
func (c *testClient) ask(text, want string) {
	c.t.Helper()
	c.send(text)
	c.expect(want)
}

// expectEnd reads the wanted bytes and then the end of the connection.
func (c *testClient) expectEnd(want string) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(c)
	if string(got) != want || err != nil {
		c.t.Fatalf("got %q (%v) up to the end, want %q", got, err, want)
	}
}

// expectQuiet asserts that nothing comes for a moment.
func (c *testClient) expectQuiet() {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	got := make([]byte, 100)
	if n, _ := c.Read(got); n > 0 {
		c.t.Fatalf("got %q, want nothing", got[:n])
	}
}

func (c *testClient) halfClose() {
	c.t.Helper()
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// untilQuiet reads what comes until nothing has come for a moment.
func (c *testClient) untilQuiet() string {
	var got []byte
	buf := make([]byte, 64<<10)
	for {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			return string(got)
		}
	}
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("in vain: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (p *testProxy) sessionCount() int { return len(p.server.all()) }

func newTextLog(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
