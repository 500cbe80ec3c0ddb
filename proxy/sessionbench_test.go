package proxy

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// answeringUpstream answers every command-sized piece of input with one
// reply, so that what is measured is the proxy and not a Redis.
func answeringUpstream(b *testing.B, commandSize int, reply string) func(context.Context) (net.Conn, error) {
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

func benchmarkSession(b *testing.B, command, reply string, pipeline int, commandsPerRound int) {
	meter, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	routes := &router{table: builtinCommands(), rules: lockRules{{match: "lock:*", db: anyDB}}}
	srv := newServer(serverConfig{
		current: newInForce(&settings{
			users: newAccounts(Auth{}), limits: defaultLimits(), router: routes,
			dialUpstream: answeringUpstream(b, len(command), reply),
		}),
		locks: grantedLocks{}, scripts: newScriptCache(1 << 20), metrics: meter, log: slog.New(slog.DiscardHandler),
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = srv.serve(listener) }()
	defer func() { _ = srv.shutdown(context.Background()) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	request := []byte(strings.Repeat(command, pipeline))
	answer := make([]byte, pipeline*len(reply))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(client, answer); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*pipeline*commandsPerRound)/b.Elapsed().Seconds(), "commands/s")
}

type grantedLocks struct{ lockRunner }

func (grantedLocks) do(_ context.Context, dst []byte, _ lockCall) []byte {
	return append(dst, replyOK...)
}

func BenchmarkForward(b *testing.B) {
	benchmarkSession(b, "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", "$5\r\nvalue\r\n", 1, 1)
}

func BenchmarkForwardPipeline(b *testing.B) {
	benchmarkSession(b, "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", "$5\r\nvalue\r\n", 16, 1)
}

func BenchmarkForwardDeepPipeline(b *testing.B) {
	benchmarkSession(b, "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", "$5\r\nvalue\r\n", 1000, 1)
}

func BenchmarkLockCommand(b *testing.B) {
	benchmarkSession(b, "*6\r\n$3\r\nSET\r\n$6\r\nlock:a\r\n$1\r\nv\r\n$2\r\nNX\r\n$2\r\nPX\r\n$4\r\n1000\r\n", "+OK\r\n", 1, 1)
}

// BenchmarkPump is the measure: bytes copied both ways by two goroutines that
// look at nothing.
func BenchmarkPump(b *testing.B) {
	for _, pipeline := range []int{1, 16, 1000} {
		b.Run(map[int]string{1: "one", 16: "pipeline", 1000: "deep"}[pipeline], func(b *testing.B) {
			command, reply := "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", "$5\r\nvalue\r\n"
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
