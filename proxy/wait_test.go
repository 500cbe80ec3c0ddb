package proxy

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/proxytest"
	"redlock-proxy/proxy/route"
)

// startWaitingProxy serves locks on five real masters. Their rule has this wait.
func startWaitingProxy(t *testing.T, wait time.Duration, change ...func(*config.Config)) (p *Proxy, stop func() error) {
	t.Helper()
	cfg := config.Demo()
	cfg.Upstream = config.Upstream{Kind: config.UpstreamNone}
	cfg.Masters = config.Masters{}
	for range 5 {
		cfg.Masters.Servers = append(cfg.Masters.Servers, redisEndpoint(proxytest.StartRedis(t)))
	}
	cfg.NewSet = true
	cfg.MasterTimeout = patience // a busy machine is no failed master
	cfg.Locks = route.Rules{{Match: "lock:*", DB: route.AnyDB, Wait: wait}}
	for _, change := range change {
		change(cfg)
	}
	p, stop = startWholeProxy(t, cfg)
	waitReady(t, p)
	return p, stop
}

// waitingClient connects to the proxy and sends commands.
func waitingClient(t *testing.T, p *Proxy, lines ...string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	for _, line := range lines {
		fmt.Fprintf(conn, "%s\r\n", line)
	}
	return conn
}

func wantReplies(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v; want %q", got[:n], err, want)
	}
}

// wantInLine waits until so many acquires wait.
func wantInLine(t *testing.T, p *Proxy, want int) {
	t.Helper()
	eventually(t, fmt.Sprint(want, " acquires wait"), func() bool {
		_, body := fetch(t, "http://"+p.web.Addr().String()+"/metrics")
		return strings.Contains(body, fmt.Sprintf("redlock_waiting_acquires{rule=\"lock:*\"} %d\n", want))
	})
}

// Commands behind an acquire that waits are answered after it. A client that leaves gives
// up its place at once. When the proxy drains, those who wait are refused at once.
func TestAcquiresWaitOnTheWire(t *testing.T) {
	p, stop := startWaitingProxy(t, time.Hour)
	holder := waitingClient(t, p, "SET lock:a holder NX PX 3600000")
	wantReplies(t, holder, "+OK\r\n")
	leaves := waitingClient(t, p, "SET lock:a leaves NX PX 3600000", "PING")
	wantInLine(t, p, 1)
	next := waitingClient(t, p, "SET lock:a next NX PX 3600000", "PING", "MULTI", "SET lock:a again NX", "EXEC")
	wantInLine(t, p, 2)
	_ = leaves.Close()
	wantInLine(t, p, 1)
	fmt.Fprint(holder, "DEL lock:a\r\n")
	wantReplies(t, holder, ":1\r\n")
	wantReplies(t, next, "+OK\r\n+PONG\r\n+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n")

	first, second := waitingClient(t, p, "SET lock:a first NX PX 3600000"), waitingClient(t, p, "SETNX lock:a second")
	wantInLine(t, p, 2)
	if err := stop(); err != nil {
		t.Error(err)
	}
	wantReplies(t, first, "$-1\r\n")
	wantReplies(t, second, ":0\r\n")
}

// A lock whose TTL is over goes to the one who waits for it, by the masters' notice.
func TestAnAcquireWaitsForTheEndOfATTL(t *testing.T) {
	t.Parallel() // it waits most of its time
	p, _ := startWaitingProxy(t, time.Hour)
	wantReplies(t, waitingClient(t, p, "SET lock:a holder NX PX 2000"), "+OK\r\n")
	wantReplies(t, waitingClient(t, p, "SET lock:a next NX PX 3600000"), "+OK\r\n")
}
