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

	"github.com/prometheus/client_golang/prometheus"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/handler"
	"redlock-proxy/proxy/lock"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
	"redlock-proxy/proxy/session"
	"redlock-proxy/proxy/unruled"
	"redlock-proxy/proxy/wire"
	"redlock-proxy/redlock/resp"
)

// answeringUpstream answers every command-sized piece of input with one
// reply, so that what is measured is the proxy and not a Redis.
func answeringUpstream(b testing.TB, commandSize int, reply string) func(context.Context) (net.Conn, error) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				replies := []byte(strings.Repeat(reply, 2000))
				buf := make([]byte, 64<<10)
				_, _ = conn.Read(buf) // the login
				_, _ = io.WriteString(conn, wire.Pong)
				for have := 0; ; {
					n, err := conn.Read(buf)
					if err != nil {
						return
					}
					have += n
					if _, err := conn.Write(replies[:have/commandSize*len(reply)]); err != nil {
						return
					}
					have %= commandSize
				}
			}()
		}
	}()
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	}
}

// benchService forwards to such an upstream and grants every lock.
func benchService(b testing.TB, commandSize int, reply string) (*session.Env, *handler.Service) {
	b.Helper()
	meter, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	routes := &route.Router{Table: route.Builtin(), Rules: route.Rules{{Match: "lock:*", DB: route.AnyDB}}}
	current := config.NewActive(&config.Settings{
		Config: config.Demo(),
		Users:  config.NewAccounts(config.Auth{May: config.RightBoth}, 0), Router: routes,
		DialUpstream: answeringUpstream(b, commandSize, reply),
	})
	env := session.NewEnv(current, meter, slog.New(slog.DiscardHandler), proxytest.Loop(b))
	b.Cleanup(env.Upstream.Close)
	return env, newTestService(env, handler.Config{
		Locks: grantedLocks{}, Scripts: lock.NewScripts(1<<20, nil), Unruled: unruled.New(env.Log),
	})
}

// A pipeliner sends the same commands again and again through a session, and
// awaits their answers.
type pipeliner struct {
	conn            net.Conn
	request, answer []byte
}

func newPipeliner(b testing.TB, command, reply string, pipeline int, shares bool) *pipeliner {
	b.Helper()
	env, commands := benchService(b, len(command), reply)
	env.Active.Replace(func(now config.Settings) config.Settings {
		changed := *now.Config
		if changed.UpstreamConnections = config.ConnectionsOwn; shares {
			changed.UpstreamConnections = config.ConnectionsShared
		}
		now.Config = &changed
		return now
	})
	conn := dialServer(b, commands)
	return &pipeliner{conn, []byte(strings.Repeat(command, pipeline)), make([]byte, pipeline*len(reply))}
}

// dialServer has a server serve a client.
func dialServer(b testing.TB, srv *handler.Service) net.Conn {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = srv.Serve(listener) }()
	b.Cleanup(func() { _ = srv.Shutdown(context.Background()) })
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (p *pipeliner) turn(b testing.TB) {
	if _, err := p.conn.Write(p.request); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(p.conn, p.answer); err != nil {
		b.Fatal(err)
	}
}

func benchmarkSession(b *testing.B, command, reply string, pipeline int) {
	client := newPipeliner(b, command, reply, pipeline, false)
	b.ReportAllocs()
	for b.Loop() {
		client.turn(b)
	}
	b.ReportMetric(float64(b.N*pipeline)/b.Elapsed().Seconds(), "commands/s")
}

const (
	benchGet   = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
	benchSet   = "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000012345\r\n$3\r\nxxx\r\n"
	benchTake  = "*6\r\n$3\r\nSET\r\n$3\r\nkey\r\n$3\r\nxxx\r\n$2\r\nNX\r\n$2\r\nEX\r\n$2\r\n10\r\n"
	benchDel   = "*2\r\n$3\r\nDEL\r\n$3\r\nkey\r\n"
	benchValue = "$5\r\nvalue\r\n"
)

// BenchmarkPerform is what a session itself spends on a forwarded command (or two, if a lock is taken and given
// back), without sockets. The upstream answers: a session waits for the replies of a client that has left.
// Unwatched, nobody looks for locks that no rule matches.
func BenchmarkPerform(b *testing.B) {
	const pipeline = 16
	env, commands := benchService(b, 1, "")
	env.Active.Replace(func(s config.Settings) config.Settings {
		s.DialUpstream = func(context.Context) (net.Conn, error) {
			return newAnswering(), nil
		}
		return s
	})
	watch := commands.Unruled
	for _, run := range []struct{ name, command string }{{"get", benchGet}, {"set", benchSet}, {"set nx", benchTake}, {"del", benchDel}, {"set nx del", benchTake + benchDel}} {
		for _, watching := range []bool{true, false} {
			b.Run(run.name+map[bool]string{false: " unwatched"}[watching], func(b *testing.B) {
				commands.Unruled = nil
				if watching {
					commands.Unruled = watch
				}
				client := &repeater{drain: newDrain(), text: strings.Repeat(run.command, pipeline), times: b.N}
				b.ReportAllocs()
				b.ResetTimer()
				commands.Welcome(client)
				commands.AwaitLeaving(b.Context())
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pipeline), "ns/command")
			})
		}
	}
}

// drain is a connection that takes everything and from which nothing comes.
type drain struct{ net.Conn }

func newDrain() drain {
	silent, _ := net.Pipe()
	return drain{silent}
}

// An answering is a connection that answers each command.
type answering struct {
	drain
	wakes chan struct{} // has one item when there may be more to read
	ended chan struct{}
	end   sync.Once

	mu   sync.Mutex
	owed int // replies
}

func newAnswering() *answering {
	return &answering{drain: newDrain(), wakes: make(chan struct{}, 1), ended: make(chan struct{})}
}

func (c *answering) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed += bytes.Count(p, []byte("*"))
	select {
	case c.wakes <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (c *answering) Read(p []byte) (int, error) {
	for {
		c.mu.Lock()
		n := min(c.owed, len(p)/len(wire.Pong))
		c.owed -= n
		c.mu.Unlock()
		if n > 0 {
			return copy(p, strings.Repeat(wire.Pong, n)), nil
		}
		select {
		case <-c.wakes:
		case <-c.ended:
			return 0, io.EOF
		}
	}
}

func (c *answering) Close() error {
	c.end.Do(func() { close(c.ended) })
	return c.drain.Close()
}

// repeater is a drain from which the same text comes so many times.
type repeater struct {
	drain
	text  string
	at    int // what came of it
	times int
}

func (r *repeater) Read(p []byte) (int, error) {
	if r.times == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[r.at:])
	if r.at += n; r.at == len(r.text) {
		r.at = 0
		r.times--
	}
	return n, nil
}

func (drain) Write(p []byte) (int, error) { return len(p), nil }

type grantedLocks struct{ handler.Locks }

func (grantedLocks) Parks(lock.Command) bool    { return true }
func (grantedLocks) Overlaps(lock.Command) bool { return true }

func (grantedLocks) Do(_ context.Context, dst []byte, _ lock.Command) []byte {
	return append(dst, wire.OK...)
}

func BenchmarkForward(b *testing.B) { benchmarkSession(b, benchGet, benchValue, 1) }

func BenchmarkForwardPipeline(b *testing.B) { benchmarkSession(b, benchGet, benchValue, 16) }

func BenchmarkForwardDeepPipeline(b *testing.B) { benchmarkSession(b, benchGet, benchValue, 1000) }

func BenchmarkLockCommand(b *testing.B) {
	benchmarkSession(b, "*6\r\n$3\r\nSET\r\n$6\r\nlock:a\r\n$1\r\nv\r\n$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1000\r\n", "+OK\r\n", 1)
}

// BenchmarkPump is the measure: bytes copied both ways by two goroutines that
// look at nothing.
func BenchmarkPump(b *testing.B) {
	for _, pipeline := range []int{1, 16, 1000} {
		b.Run(map[int]string{1: "one", 16: "pipeline", 1000: "deep"}[pipeline], func(b *testing.B) {
			command, reply := benchGet, benchValue
			dial := answeringUpstream(b, len(command), reply)
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			go func() {
				near, err := listener.Accept()
				if err != nil {
					return
				}
				far, err := dial(context.Background())
				if err != nil {
					return
				}
				_, _ = far.Write(resp.AppendCommand(nil, []byte("PING"))) // the upstream takes what comes first for a login
				if _, err := io.ReadFull(far, make([]byte, len(wire.Pong))); err != nil {
					return
				}
				pump := func(to, from net.Conn) {
					defer func() { _ = to.Close() }()
					buf := make([]byte, 32<<10)
					for {
						n, err := from.Read(buf)
						if err != nil {
							return
						}
						if _, err := to.Write(buf[:n]); err != nil {
							return
						}
					}
				}
				go pump(far, near)
				pump(near, far)
			}()
			client, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			request := []byte(strings.Repeat(command, pipeline))
			answer := make([]byte, pipeline*len(reply))
			for b.Loop() {
				_, _ = client.Write(request)
				if _, err := io.ReadFull(client, answer); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*pipeline)/b.Elapsed().Seconds(), "commands/s")
		})
	}
}
