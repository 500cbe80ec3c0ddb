package proxy

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"redlock-proxy/integration/child"
	"redlock-proxy/proxy/proxytest"
)

// blockedClients tells whether this number of clients of a Redis waits.
func blockedClients(t *testing.T, redis *proxytest.Redis, number string) func() bool {
	return func() bool { return strings.Contains(redis.Ask(t, "INFO clients"), "blocked_clients:"+number+"\r\n") }
}

// connectionsOf counts the clients of a Redis, without the one that asks.
func connectionsOf(t *testing.T, redis *proxytest.Redis) int {
	t.Helper()
	return strings.Count(redis.Ask(t, "CLIENT LIST"), " addr=") - 1
}

// After a failover a client that connects again because of READONLY reaches the new primary. Over
// shared connections so do all others, and do not connect again.
func TestUpstreamFailsOver(t *testing.T) {
	const readOnly = "-READONLY You can't write against a read only replica.\r\n"
	for connections, configure := range map[string]func(*testConfig){"own": func(*testConfig) {}, "shared": sharing} {
		t.Run(connections, func(t *testing.T) {
			port, err := child.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			former, primary := proxytest.StartRedis(t), proxytest.StartRedis(t, "--port", strconv.Itoa(port))
			var name atomic.Pointer[proxytest.Redis] // leads to the primary
			name.Store(former)
			p := startTestProxy(t, former, configure, func(c *testConfig) {
				c.DialUpstream = func(ctx context.Context) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", name.Load().Socket)
				}
			})
			var clients []*testClient
			for range 6 {
				c := p.dial(t)
				c.ask("SET a 1\r\n", "+OK\r\n")
				clients = append(clients, c)
			}
			former.Ask(t, "REPLICAOF 127.0.0.1 "+strconv.Itoa(port))
			name.Store(primary)
			clients[0].ask("SET a 2\r\n", readOnly)
			p.dial(t).ask("SET a 2\r\n", "+OK\r\n")
			for i, c := range clients[1:] {
				if connections == "own" {
					c.ask("SET a 3\r\n", readOnly)
					c = p.dial(t)
				}
				c.ask(fmt.Sprintf("SET b%d 1\r\nGET a\r\n", i), "+OK\r\n"+bulk("2"))
			}
			if size := primary.Ask(t, "DBSIZE"); size != ":6\r\n" {
				t.Errorf("the primary has %q keys", size)
			}
		})
	}
}
