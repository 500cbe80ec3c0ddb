package proxy

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/wire"
)

// counter is what a metric says, of the series with one label or with none.
func (p *testProxy) counter(t *testing.T, name, label string) int {
	t.Helper()
	families, err := p.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name && (label == "" || metric.GetLabel()[0].GetValue() == label) {
				return int(metric.GetCounter().GetValue())
			}
		}
	}
	t.Fatalf("there is no metric %s{%s}", name, label)
	return 0
}

// reached tells how often the metric says that a limit was.
func (p *testProxy) reached(t *testing.T, limit config.LimitName) int {
	t.Helper()
	return p.counter(t, "redlock_limit_reached_total", string(limit))
}

func (p *testProxy) wantReached(t *testing.T, limit config.LimitName, times int) {
	t.Helper()
	eventually(t, fmt.Sprintf("limit %s was reached %d times", limit, times), func() bool { return p.reached(t, limit) == times })
}

// What Redis limits too: configured alike, Redis and the proxy give the same
// answer, to the end of the connection.
func TestLimitsAgreeWithRedis(t *testing.T) {
	const mega = 1 << 20
	many := strings.Repeat("x", 3*mega)
	locked := []string{"--requirepass", proxytest.Password}
	for _, row := range []struct {
		limit     config.LimitName
		redis     []string
		configure func(*testConfig)
		program   string
	}{
		{wire.LimitBulk, []string{"--proto-max-bulk-len", "1mb"}, func(c *testConfig) { c.Limits.Bulk = mega }, "PING\r\n*2\r\n$4\r\nECHO\r\n$1048577\r\n"},
		{wire.LimitBulk, nil, nil, "*2\r\n$4\r\nECHO\r\n$536870913\r\n"},
		{wire.LimitMultibulk, nil, nil, "PING\r\n*2147483648\r\n"},
		{wire.LimitInline, nil, nil, "PING\r\n" + many[:64<<10+1]},
		{wire.LimitInline, nil, nil, "*1\r\n$" + many[:64<<10]},
		{wire.LimitLoginMultibulk, locked, nil, "PING\r\n*11\r\n"},
		{wire.LimitLoginBulk, locked, nil, "*2\r\n$4\r\nAUTH\r\n$16385\r\n"},
		{config.LimitQuery, []string{"--client-query-buffer-limit", "1mb"}, func(c *testConfig) { c.Limits.Query = mega }, "*2\r\n$4\r\nECHO\r\n$3145728\r\n" + many},
		{config.LimitIdle, []string{"--timeout", "1"}, func(c *testConfig) { c.Limits.Idle = time.Second }, "PING\r\n*1\r\n"},
	} {
		t.Run(fmt.Sprintf("%s %.20q", row.limit, row.program), func(t *testing.T) {
			t.Parallel()
			redis := proxytest.StartRedis(t, row.redis...)
			upstream := proxytest.StartRedis(t)
			p := startTestProxy(t, upstream, func(c *testConfig) {
				if row.redis != nil && row.redis[0] == locked[0] {
					c.Users = config.NewAccounts(config.Auth{Password: proxytest.Password}, 0)
				}
				if row.configure != nil {
					row.configure(c)
				}
			})
			want := untilClosed(t, redis.Dial(t), row.program)
			near, far := net.Pipe() // no reset can overtake the answer
			p.clients.Welcome(far)
			if got := untilClosed(t, near, row.program); got != want {
				t.Errorf("got %.200q, Redis answers %.200q", got, want)
			}
			p.wantReached(t, row.limit, 1)
			eventually(t, "all memory is given back", func() bool { return p.env.Budget.InUse() == 0 })
		})
	}
}

// untilClosed sends a program and returns what is answered until the server
// closes.
func untilClosed(t *testing.T, conn net.Conn, program string) string {
	t.Helper()
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go func() { _, _ = io.WriteString(conn, program) }() // fails where the server closes before the end
	answer, err := io.ReadAll(conn)
	if os.IsTimeout(err) {
		t.Fatalf("the connection is still open after %.200q", answer)
	}
	return string(answer)
}

func TestClientLimitAgreesWithRedis(t *testing.T) {
	redis := proxytest.StartRedis(t, "--maxclients", "3") // one is the test's own
	p := startTestProxy(t, nil, func(c *testConfig) { c.Limits.Clients = 2 })
	for range 2 {
		_ = redis.Dial(t)
		p.dial(t).ask("PING\r\n", "+PONG\r\n")
	}
	redis.Settle(t)
	want, err := io.ReadAll(redis.Dial(t))
	if err != nil {
		t.Fatal(err)
	}
	p.dial(t).expectEnd(string(want))
	p.wantReached(t, config.LimitClients, 1)
}

// The list of a command's arguments takes more memory than their bytes.
func TestArgumentsCountAsMemory(t *testing.T) {
	p := startTestProxy(t, nil, func(c *testConfig) { c.Limits.Memory, c.Limits.LockKeys = 4<<20, 50_000 })
	client := p.dial(t)
	client.ask("*50000\r\n$6\r\nEXISTS\r\n"+strings.Repeat("$6\r\nlock:x\r\n", 49_999), ":0\r\n")
	near, far := net.Pipe()
	p.clients.Welcome(far)
	if got := untilClosed(t, near, "*200000\r\n"+strings.Repeat("$1\r\nx\r\n", 200_000)); got != string(wire.ErrMemory) {
		t.Errorf("got %q", got)
	}
	p.wantReached(t, config.LimitMemory, 1)
	_ = client.Close()
	eventually(t, "all memory is given back", func() bool { return p.env.Budget.InUse() == 0 })
}

func TestTrackedPrefixesAreBounded(t *testing.T) {
	masters := &fakeMasters{}
	client := startTestProxy(t, nil, masters.configure).dial(t)
	program := func(from, to int) string {
		words := []string{"CLIENT TRACKING ON BCAST"}
		for i := from; i < to; i++ {
			words = append(words, fmt.Sprintf("PREFIX lock:%d:", i))
		}
		return strings.Join(words, " ") + "\r\n"
	}
	client.ask("HELLO 3\r\n", helloText(3))
	client.ask(program(0, 1000+1), string(wire.ErrTrackingPrefixes))
	client.ask(program(0, 1000)+program(1000, 1000+1), wire.OK+string(wire.ErrTrackingPrefixes))
	client.ask("CLIENT TRACKING OFF\r\n", wire.OK)
}

// A subscriber that does not read is left with nothing, as Redis leaves one.
func TestOutputLimitAgreesWithRedis(t *testing.T) {
	redis := proxytest.StartRedis(t, "--client-output-buffer-limit", "pubsub 1mb 0 0")
	masters := &fakeMasters{}
	p := startTestProxy(t, nil, masters.configure, func(c *testConfig) { c.Limits.Output = 1 << 20 })
	subscriber, client := redis.Dial(t), p.dial(t)
	_, _ = io.WriteString(subscriber, "SUBSCRIBE lock:a\r\n")
	client.ask("SUBSCRIBE lock:a\r\n", confirmed("*", "subscribe", "lock:a", 1))
	redis.Settle(t)
	message := strings.Repeat("x", 50_000)
	for range 400 { // more than sockets hold, too
		redis.Ask(t, "PUBLISH lock:a "+message)
		masters.publish("lock:a", message)
	}
	eventually(t, "Redis has left its subscriber", func() bool { return redis.Settle(t) == 1 })
	eventually(t, "so has the proxy", func() bool { return p.sessionCount() == 0 })
	p.wantReached(t, config.LimitOutput, 1)
	eventually(t, "the memory is given back", func() bool { return p.env.Budget.InUse() == 0 })
}

func TestUnreadTimeLimit(t *testing.T) {
	p := startTestProxy(t, nil, func(c *testConfig) { c.Limits.UnreadTime = 50 * time.Millisecond })
	near, far := net.Pipe()
	defer func() { _ = near.Close() }()
	p.clients.Welcome(far)
	_, _ = io.WriteString(near, "PING\r\n") // and nobody reads the answer
	eventually(t, "the client is left", func() bool { return p.sessionCount() == 0 })
	p.wantReached(t, config.LimitUnreadTime, 1)
}

// A flood of connections, most of them half-open, keeps nobody who is served
// from being served, and those that come later get their turn.
func TestFloodOfConnections(t *testing.T) {
	redis := proxytest.StartRedis(t)
	p := startTestProxy(t, redis, func(c *testConfig) {
		c.Limits.Clients = 50
	})
	served := p.dial(t)
	// A subscriber may be silent, so the limit for the others cannot end it on a busy machine.
	served.ask("SET k v\r\nHELLO 3\r\nSUBSCRIBE c\r\n", "+OK\r\n"+helloText(3)+">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
	p.change(func(s *config.Settings) { s.Limits.Idle = 200 * time.Millisecond })
	stop := make(chan struct{})
	var flood sync.WaitGroup
	defer flood.Wait()
	defer close(stop)
	for range 70 {
		flood.Go(func() { p.floodUntil(stop) })
	}
	eventually(t, "all places are taken, and taken back", func() bool {
		served.ask("PING\r\n", "+PONG\r\n")
		return p.reached(t, config.LimitClients) > 0 && p.reached(t, config.LimitIdle) > 0
	})
	for range 100 {
		served.ask("GET k\r\nGET lock:none\r\n", "$1\r\nv\r\n_\r\n")
	}
	p.dialUntilServed(t)
}

// floodUntil holds a half-open connection for as long as it is let.
func (p *testProxy) floodUntil(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(conn, "*1\r\n$4\r\n")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
}

// dialUntilServed tries as clients do that are told that there is no room.
func (p *testProxy) dialUntilServed(t *testing.T) {
	t.Helper()
	eventually(t, "a new client is served", func() bool {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(conn, "PING\r\n")
		answer := make([]byte, len(wire.Pong))
		_, err = io.ReadFull(conn, answer)
		return err == nil && string(answer) == wire.Pong
	})
}
