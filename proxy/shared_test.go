package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// 50 clients with random pipelines on keys of their own see what each would see alone.
func TestInterleavedSessions(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, sharing)
	pieces := []string{
		"SET k%d a\r\n", "APPEND k%d b\r\n", "GET k%d\r\n", "INCR n%d\r\n", "DEL k%d\r\n", "LPUSH l%d x y\r\n", "LRANGE l%d 0 -1\r\n", "GET\r\n",
		"HSET h%d f v\r\n", "HGETALL h%d\r\n", "MGET k%d none\r\n", "NOSUCH k%d\r\n", "SETRANGE k%d 70000 z\r\n", "STRLEN k%d\r\n", "ECHO e%d\r\n", "PING\r\n",
		"CLIENT REPLY SKIP\r\nINCR n%d\r\n", "MULTI\r\nINCR n%d\r\nEXEC\r\n", "SET lock:%d 1 NX\r\n", "GET lock:%d\r\n",
		"SELECT 1\r\nGET k%d\r\nSELECT 0\r\n", "HELLO 3\r\nHGETALL h%d\r\nHELLO 2\r\n", "EVAL \"return {1,KEYS[1]}\" 1 k%d\r\n",
	}
	text := func(of int) (steps []string) {
		random := rand.New(rand.NewPCG(uint64(of), 7))
		for range 30 {
			step := ""
			for range 1 + random.IntN(12) {
				piece := pieces[random.IntN(len(pieces))]
				if random.IntN(5) > 0 { // most sessions need a connection of their own late or never
					piece = pieces[random.IntN(14)]
				}
				if strings.Contains(piece, "%d") {
					piece = fmt.Sprintf(piece, of)
				}
				step += piece
			}
			steps = append(steps, step)
		}
		return steps
	}
	const sessions = 50
	want := make([][]string, sessions)
	for i := range sessions {
		direct := dialTest(t, "unix", redis.Socket)
		for _, step := range text(i) {
			direct.send(step + "ECHO end-of-step\r\n")
			want[i] = append(want[i], direct.upTo(bulk("end-of-step")))
		}
		_ = direct.Close()
	}
	redis.Ask(t, "FLUSHALL")
	var all sync.WaitGroup
	for i := range sessions {
		client := p.dial(t)
		all.Go(func() {
			for j, step := range text(i) {
				_, _ = client.Write([]byte(step))
				_ = client.SetReadDeadline(time.Now().Add(patience))
				if got := client.values(countValues(want[i][j])); withoutIncidentals(got) != withoutIncidentals(want[i][j]) {
					t.Errorf("session %d, %q:\n Redis answers %.300q\n the proxy     %.300q", i, step, want[i][j], got)
					return
				}
			}
		})
	}
	all.Wait()
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
