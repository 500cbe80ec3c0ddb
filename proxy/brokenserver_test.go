package proxy

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/inspect"
)

// brokenStreams are what a broken server may send, or a server that is no Redis. Each but
// the first goes on for ever.
var brokenStreams = map[string]struct{ first, repeated string }{
	"nothing":               {},
	"no RESP":               {"HTTP/1.1 400 Bad Request\r\n", "x\r\n"},
	"nested arrays":         {"", "*1\r\n"},
	"nested maps":           {"", "%1\r\n:1\r\n"},
	"a map with map keys":   {"%1\r\n%1\r\n", "+a\r\n+b\r\n"},
	"nested attributes":     {"", "|1\r\n"},
	"attributes of nothing": {"", "|1\r\n+a\r\n+b\r\n"},
	"nested pushes":         {"", ">1\r\n"},
	"pushes":                {"", ">2\r\n+invalidate\r\n_\r\n"},
	"a line without end":    {"+", strings.Repeat("x", 1000)},
	"an array without end":  {"*99999999999999999\r\n", ":1\r\n"},
	"arrays of long arrays": {"", "*999999999\r\n"},
	"a long text":           {"$999999999999\r\n", strings.Repeat("x", 1000)},
	"a longer text":         {"$9223372036854775807\r\n", strings.Repeat("x", 1000)},
	"a negative text":       {"$-9223372036854775807\r\n", strings.Repeat("x", 1000)},
	"an endless length":     {"$", "0"},
	"a text in parts":       {"$?\r\n", ";1\r\nx\r\n"},
	"answers to nothing":    {"", "+OK\r\n"},
	"errors":                {"", "-ERR what\r\n"},
}

// startBrokenServer answers whatever a connection says first with an endless
// stream.
func startBrokenServer(t *testing.T, first, repeated string) endpoint.Endpoint {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_, err := conn.Read(make([]byte, 4096))
				if err == nil {
					_, err = io.WriteString(conn, first)
				}
				for repeated != "" && err == nil {
					_, err = io.WriteString(conn, strings.Repeat(repeated, 1+(4<<10)/len(repeated)))
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
	})
	return endpoint.Endpoint{Name: listener.Addr().String(), Network: "tcp", Address: listener.Addr().String()}
}

// Asking a broken server what it is ends in time with an error, whatever it
// says. A library that believed its lengths would end the process here.
func TestBrokenServerIsAskedInVain(t *testing.T) {
	for name, stream := range brokenStreams {
		t.Run(name, func(t *testing.T) {
			server := startBrokenServer(t, stream.first, stream.repeated)
			cfg := config.Demo()
			cfg.Upstream = config.Upstream{Kind: config.UpstreamServer, Server: server}
			cfg.Masters = config.Masters{Servers: []endpoint.Endpoint{server}}
			for range 2 {
				a := inspect.Ask(t.Context(), cfg)
				if a.Upstream.Err == nil && a.Upstream.Version != "" || a.Masters[0].Err == nil && a.Masters[0].Version != "" {
					t.Errorf("it was taken for a server: %+v, %+v", a.Upstream, a.Masters)
				}
			}
			if inspect.Check(t.Context(), cfg, false).Fine {
				t.Error("-check finds nothing wrong with it")
			}
			if endpoint.KillScripts(t.Context(), []endpoint.Endpoint{server}) && name != "answers to nothing" {
				t.Error("a script was killed there")
			}
		})
	}
}

// A broken upstream costs its own client's session a bounded number of bytes,
// and the other clients nothing.
func TestBrokenUpstreamConcernsItsClientOnly(t *testing.T) {
	for name, stream := range brokenStreams {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startBrokenServer(t, stream.first, stream.repeated)
			p := startTestProxy(t, nil, func(c *testConfig) {
				c.DialUpstream = func(ctx context.Context) (net.Conn, error) { return server.Dial(ctx) }
				c.Limits.Bulk = 1 << 20
				c.Limits.UnreadTime = patience
			})
			for _, program := range []string{"GET a\r\n", "HELLO 3\r\nGET a\r\n", "SELECT 1\r\nGET a\r\nSELECT 2\r\nGET lock:a\r\n",
				"INFO\r\n", "MGET a lock:a\r\n", "SUBSCRIBE a\r\n", "MULTI\r\nGET a\r\nEXEC\r\n", "CLIENT TRACKING ON\r\n"} {
				client := p.dial(t)
				client.send(program)
				other := p.dial(t)
				other.ask("SET lock:other 1 NX\r\nDEL lock:other\r\n", "+OK\r\n:1\r\n")
				_ = other.Close()
				_ = client.Close()
			}
			eventually(t, "no session is left", func() bool { return p.sessionCount() == 0 })
			eventually(t, "the memory is given back", func() bool { return p.env.Budget.InUse() == 0 })
		})
	}
}
