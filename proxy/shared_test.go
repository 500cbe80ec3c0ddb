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
	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

// connectionsOf counts the clients of a Redis, without the one that asks.
func connectionsOf(t *testing.T, redis *proxytest.Redis) int {
	t.Helper()
	return strings.Count(redis.Ask(t, "CLIENT LIST"), " addr=") - 1
}

// Many clients use few upstream connections. One that needs its own opens it, and sees
// everything that it did before.
func TestSharedConnections(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, sharing)
	var clients []*testClient
	for i := range 30 {
		c := p.dial(t)
		c.ask(fmt.Sprintf("SET k%d %d\r\nGET k%d\r\n", i, i, i), fmt.Sprintf("+OK\r\n%s", bulk(fmt.Sprint(i))))
		clients = append(clients, c)
	}
	if n := connectionsOf(t, redis); n > 2 {
		t.Errorf("30 clients need %d connections", n)
	}
	for i, line := range []string{"SELECT 3\r\n", "CLIENT SETNAME me\r\n", "CLIENT NO-EVICT on\r\n"} {
		before := connectionsOf(t, redis)
		clients[i].ask(line+"GET none\r\n", "+OK\r\n$-1\r\n")
		if now := connectionsOf(t, redis); now != before+1 {
			t.Errorf("after %q there are %d connections, and were %d", line, now, before)
		}
	}
	clients[5].ask("SET x 1\r\nMULTI\r\nINCR x\r\nEXEC\r\nGET x\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:2\r\n"+bulk("2"))
	clients[6].ask("SET y 1\r\nEVAL \"return redis.call('GET', KEYS[1])\" 1 y\r\n", "+OK\r\n"+bulk("1"))
	clients[7].ask("LPUSH list a\r\nBLPOP list 1\r\n", ":1\r\n*2\r\n"+bulk("list")+bulk("a"))
	clients[8].ask("GET y\r\nSET lock:a 1 NX\r\nGET y\r\n", bulk("1")+"+OK\r\n"+bulk("1"))
	clients[9].ask("SET z 1\r\nWAIT 0 0\r\nGET z\r\n", "+OK\r\n"+string(wire.ErrWaitShared)+bulk("1"))
	p.dial(t).ask("GET y\r\nWAIT 0 0\r\n", bulk("1")+":0\r\n")
	clients[11].ask("CLIENT REPLY OFF\r\nGET y\r\nCLIENT REPLY ON\r\nGET z\r\n", "+OK\r\n"+bulk("1"))
}

// Clients with users of the upstream never share.
func TestUsersOfTheUpstreamDoNotShare(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, sharing, func(c *testConfig) { c.Users = config.NewAccounts(config.Auth{Upstream: true}, 0) })
	for range 5 {
		p.dial(t).ask("SET a 1\r\n", "+OK\r\n")
	}
	if n := connectionsOf(t, redis); n != 5 {
		t.Errorf("5 clients have %d connections", n)
	}
}

// An inline command gets a connection of its own if the array that is sent for it is long.
func TestLongInlineCommandDoesNotShare(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, sharing)
	other, c := p.dial(t), p.dial(t)
	other.ask("SET k 1\r\nGET k\r\n", "+OK\r\n"+bulk("1"))
	c.ask("GET k\r\n", bulk("1"))
	before := connectionsOf(t, redis)
	c.ask("MGET"+strings.Repeat(" k", 30_000)+"\r\nGET k\r\n", "*30000\r\n"+strings.Repeat(bulk("1"), 30_000)+bulk("1"))
	if now := connectionsOf(t, redis); now != before+1 {
		t.Errorf("there are %d connections, and were %d", now, before)
	}
	other.ask("GET k\r\n", bulk("1"))
}

// A long pipeline gets a connection of its own.
func TestLongPipelineDoesNotShare(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, sharing)
	c := p.dial(t)
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write([]byte(strings.Repeat("SET a 1\r\n", 50_000) + "GET a\r\n"))
		sent <- err
	}()
	c.expect(strings.Repeat("+OK\r\n", 50_000) + bulk("1"))
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	other := p.dial(t)
	other.ask("SET b "+strings.Repeat("x", 50_000)+"\r\n", "+OK\r\n")
	if n := connectionsOf(t, redis); n > 3 {
		t.Errorf("%d connections", n)
	}
	if up, members := p.env.Upstream.Counts(); up == 0 || members != 1 {
		t.Errorf("%d shared connections, %d clients", up, members)
	}
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

// The change of the setting holds from each client's next command on.
func TestSharingIsTurnedOff(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, sharing)
	c := p.dial(t)
	c.ask("SET a 1\r\n", "+OK\r\n")
	before := connectionsOf(t, redis)
	p.change(func(s *config.Settings) {
		owns := *s.Config
		owns.UpstreamConnections = config.ConnectionsOwn
		s.Config = &owns
	})
	c.ask("GET a\r\n", bulk("1"))
	if now := connectionsOf(t, redis); now != before+1 {
		t.Errorf("%d connections, and were %d", now, before)
	}
}

// A client that has certainly gone leaves its session, although the upstream is silent.
func TestClientOfASilentUpstreamLeaves(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, sharing)
	c := p.dial(t)
	redis.Ask(t, "CLIENT PAUSE 100000 WRITE")
	c.send("SET a 1\r\nSET lock:a 1 NX\r\n") // the lock waits for the first command's reply
	eventually(t, "the command waits", func() bool { return strings.Contains(redis.Ask(t, "INFO clients"), "blocked_clients:1") })
	_ = c.Conn.(*net.TCPConn).SetLinger(0) // its machine resets the connection
	_ = c.Close()
	eventually(t, "the session has ended", func() bool { _, members := p.env.Upstream.Counts(); return members == 0 })
	redis.Ask(t, "CLIENT UNPAUSE")
}

// A broken shared connection ends the clients that wait for replies, and no others.
func TestSharedConnectionBreaks(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, sharing)
	idle := p.dial(t)
	idle.ask("SET a 1\r\n", "+OK\r\n")
	kill := func() {
		redis.Ask(t, "CLIENT KILL TYPE normal SKIPME yes")
		eventually(t, "the proxy sees it", func() bool { open, _ := p.env.Upstream.Counts(); return open == 0 })
	}
	kill()
	idle.ask("GET a\r\n", bulk("1"))

	waiting := p.dial(t)
	waiting.ask("GET a\r\n", bulk("1"))
	redis.Ask(t, "CLIENT PAUSE 100000 WRITE")
	waiting.send("SET a 2\r\n")
	eventually(t, "the command waits", func() bool { return strings.Contains(redis.Ask(t, "INFO clients"), "blocked_clients:1") })
	kill()
	waiting.expectEnd("")
	redis.Ask(t, "CLIENT UNPAUSE")
	idle.ask("GET a\r\n", bulk("1"))
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
