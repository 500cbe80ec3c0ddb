package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tidwall/redcon"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/events"
	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock"
	"redlock-proxy/redlock/loop"
)

// patience is how long tests wait for what must happen: far beyond what a busy
// machine needs.
const patience = time.Minute

// fakeLocks is a lock plane that is one map. Some keys are special: lock:slow
// waits until the client goes or release is closed, lock:panic panics. SET NX on keys that begin with
// lock:beside: may run beside other commands.
type fakeLocks struct {
	mu       sync.Mutex
	values   map[string]string
	calls    []string
	dbs      []int // of calls
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

func (f *fakeLocks) Do(ctx context.Context, dst []byte, call lock.Command) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.dbs = append(f.calls, string(bytes.Join(call.Args, []byte(" ")))), append(f.dbs, call.DB)
	var first string
	if len(call.Args) > 1 {
		first = string(call.Args[1])
	}
	switch first {
	case "lock:panic", "lock:beside:panic":
		panic("made for the test")
	case "lock:slow", "lock:beside:slow":
		f.mu.Unlock()
		loop.FromContext(ctx).Leave()
		f.entered <- struct{}{}
		select {
		case <-ctx.Done():
			f.left <- struct{}{}
		case <-f.released:
		}
		f.mu.Lock()
		return append(dst, wire.OK...)
	}
	switch name := strings.ToLower(string(call.Args[0])); name {
	case "set":
		if _, held := f.values[first]; held {
			return wire.AppendNull(dst, call.Version)
		}
		f.values[first] = string(call.Args[2])
		return append(dst, wire.OK...)
	case "get":
		if value, held := f.values[first]; held {
			return redcon.AppendBulkString(dst, value)
		}
		return wire.AppendNull(dst, call.Version)
	case "mget":
		dst = redcon.AppendArray(dst, len(call.Args)-1)
		for _, key := range call.Args[1:] {
			if value, held := f.values[string(key)]; held {
				dst = redcon.AppendBulkString(dst, value)
			} else {
				dst = wire.AppendNull(dst, call.Version)
			}
		}
		return dst
	case "del", "unlink", "exists", "touch":
		var n int64
		for _, key := range call.Args[1:] {
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
	case "redlock":
		if f.values[string(call.Args[2])] == string(call.Args[3]) {
			return append(dst, ":42\r\n"...)
		}
		return wire.AppendNull(dst, call.Version)
	}
	return append(dst, "-ERR the test has no such lock command\r\n"...)
}

// Parks: the map is at hand, but some of its keys make a caller wait.
func (f *fakeLocks) Parks(lock.Command) bool { return false }

func (f *fakeLocks) Overlaps(call lock.Command) bool {
	return call.Name() == "set" && bytes.HasPrefix(call.Args[1], []byte("lock:beside:"))
}

// Watch and Exec: a transaction runs if no watched key was named lock:stale.
func (f *fakeLocks) Watch(_ context.Context, _ int, keys [][]byte) (*redlock.Watch, wire.Error) {
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

func (f *fakeLocks) Exec(ctx context.Context, dst []byte, t lock.Transaction) []byte {
	if len(t.Watches) > 0 && f.stale {
		return append(dst, "*-1\r\n"...)
	}
	dst = redcon.AppendArray(dst, len(t.Commands))
	for _, call := range t.Commands {
		if name := call.Name(); name == "ping" {
			dst = append(dst, wire.Pong...)
			continue
		}
		dst = f.Do(ctx, dst, call)
	}
	return dst
}

func (f *fakeLocks) Peek(ctx context.Context, db int, key string) []byte {
	return f.Do(ctx, nil, lock.Command{DB: db, Args: [][]byte{[]byte("GET"), []byte(key)}})
}

type testProxy struct {
	address string
	clients *handler.Service
	locks   *fakeLocks
	env     *session.Env
	current *config.Active
	metrics *prometheus.Registry
}

type commandConfig = handler.Config

// testConfig is what a test may change before its proxy starts.
type testConfig struct {
	commandConfig
	config.Settings
	log   *slog.Logger
	known func() []events.ClientInfo // the proxy's clients, once it has started
}

// sharing has clients share upstream connections, and owning each have its own.
func sharing(c *testConfig) { c.connect(config.ConnectionsShared) }
func owning(c *testConfig)  { c.connect(config.ConnectionsOwn) }

func (c *testConfig) connect(how string) {
	changed := *c.Config
	changed.UpstreamConnections = how
	c.Config = &changed
}

// newTestService makes a Service without a monitor of its servers.
func newTestService(env *session.Env, cfg handler.Config) *handler.Service {
	cfg.Databases, cfg.Version = func() int { return 0 }, func() string { return "" }
	cfg.RedlockInfo = func(dst []byte) []byte { return dst }
	if cfg.UpstreamAnswers == nil {
		cfg.UpstreamAnswers = func() int64 { return 0 }
	}
	return handler.New(env, cfg)
}

// startTestProxy runs sessions in front of a Redis server, or of none.
func startTestProxy(t *testing.T, redis *proxytest.Redis, configure ...func(*testConfig)) *testProxy {
	t.Helper()
	registry := prometheus.NewRegistry()
	meter, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	routes := &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB}}}
	locks := newFakeLocks()
	var commands *handler.Service
	setup := testConfig{
		known: func() []events.ClientInfo { return commands.Known() },
		commandConfig: handler.Config{
			Locks:   locks,
			Scripts: lock.NewScripts(1<<20, nil),
			Unruled: unruled.New(slog.New(slog.DiscardHandler)),
		},
		log:      slog.New(slog.DiscardHandler),
		Settings: config.Settings{Config: config.Demo(), Users: config.NewAccounts(config.Auth{May: config.RightBoth}, 0), Router: routes},
	}
	if redis != nil {
		setup.DialUpstream = func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", redis.Socket)
		}
	}
	owning(&setup) // so each test sees what its clients do upstream, unless it is about sharing
	for _, change := range configure {
		change(&setup)
	}
	env := session.NewEnv(config.NewActive(&setup.Settings), meter, setup.log, proxytest.Loop(t))
	t.Cleanup(env.Upstream.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	commands = newTestService(env, setup.commandConfig)
	p := &testProxy{address: listener.Addr().String(), clients: commands, locks: locks, env: env, current: env.Active, metrics: registry}
	ended := make(chan error, 1)
	go func() { ended <- p.clients.Serve(listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.clients.Shutdown(ctx); err != nil {
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
		cfg := *old.Config
		old.Config = &cfg
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

func (c *testClient) halfClose() {
	c.t.Helper()
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// received returns what has come, and whether the server has ended the connection. It waits for nothing.
func (c *testClient) received() (text string, ended bool) {
	c.t.Helper()
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	if err != nil {
		c.t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	_ = c.SetReadDeadline(time.Time{})
	_ = raw.Read(func(fd uintptr) (done bool) {
		n, err := syscall.Read(int(fd), buf)
		for ; n > 0; n, err = syscall.Read(int(fd), buf) {
			text += string(buf[:n])
		}
		ended = n == 0 || err != nil && !errors.Is(err, syscall.EAGAIN)
		return true
	})
	return text, ended
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

func (p *testProxy) sessionCount() int { return len(p.clients.All()) }

func newTextLog(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
