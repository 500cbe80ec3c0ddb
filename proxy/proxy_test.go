package proxy

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"redlock-proxy/proxy/config"
	"redlock-proxy/proxy/endpoint"
	"redlock-proxy/proxy/proxytest"
)

// startWholeProxy builds and serves cfg on free ports until the test ends or
// stop is called; stop returns what Serve did.
func startWholeProxy(t *testing.T, cfg *config.Config) (p *Proxy, stop func() error) {
	t.Helper()
	cfg.Listen, cfg.Admin = "127.0.0.1:0", "127.0.0.1:0"
	p, err := New(cfg, slog.New(slog.DiscardHandler), new(slog.LevelVar), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx) }()
	stopped := false
	stop = func() error {
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		if !stopped {
			if err := stop(); err != nil {
				t.Errorf("Serve: %v", err)
			}
		}
	})
	return p, stop
}

func waitReady(t *testing.T, p *Proxy) {
	t.Helper()
	for deadline := time.Now().Add(patience); !p.readiness().ready; {
		if time.Now().After(deadline) {
			t.Fatalf("not ready: %s", p.readiness().text)
		}
		time.Sleep(time.Millisecond)
	}
}

// The built-in configuration takes a lock, refuses it to a second client,
// forwards what is no lock, tells all that over HTTP, and ends in order.
func TestWholeProxy(t *testing.T) {
	cfg := config.Demo()
	cfg.MasterTimeout = patience // a busy machine is no failed master
	p, stop := startWholeProxy(t, cfg)
	waitReady(t, p)
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: p.listener.Addr().String(), MaxRetries: -1})
	defer client.Close()
	if won, err := client.SetNX(ctx, "lock:a", "me", time.Minute).Result(); !won || err != nil {
		t.Fatalf("the first: %v, %v", won, err)
	}
	if won, err := client.SetNX(ctx, "lock:a", "you", time.Minute).Result(); won || err != nil {
		t.Fatalf("the second: %v, %v", won, err)
	}
	if err := client.Set(ctx, "greeting", "hello", 0).Err(); err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, server := range p.embedded {
		direct := redis.NewClient(&redis.Options{Addr: server.Address(), MaxRetries: -1})
		defer direct.Close()
		if value, err := direct.Get(ctx, "lock:a").Result(); err == nil && value == "me" {
			held++
		}
		value, err := direct.Get(ctx, "greeting").Result()
		if upstream := server.Name() == "embedded upstream"; upstream != (err == nil && value == "hello") {
			t.Errorf("%s has %q as greeting", server.Name(), value)
		}
	}
	if held < 3 {
		t.Errorf("%d masters hold the lock", held)
	}
	info, err := client.Info(ctx, "redlock").Result()
	if err != nil || !strings.Contains(info, "redlock_quorum:3\r\n") || !strings.Contains(info, "redlock_ready:1\r\n") || !strings.Contains(info, "redlock_demo:1\r\n") {
		t.Errorf("INFO redlock: %q, %v", info, err)
	}
	web := "http://" + p.web.Addr().String()
	if status, body := fetch(t, web+"/readyz"); status != 200 || strings.Count(body, "\ndemo: the ") != 2 {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if _, body := fetch(t, web+"/metrics"); !strings.Contains(body, `redlock_lock_commands_total{kind="acquire",rule="lock:*",verdict="won"} 1`) {
		t.Errorf("no won lock in the metrics:\n%s", body)
	}
	if err := stop(); err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, address := range []net.Addr{p.listener.Addr(), p.web.Addr()} {
		if conn, err := net.Dial("tcp", address.String()); err == nil {
			conn.Close()
			t.Errorf("%s is still open", address)
		}
	}
	if now := p.readiness(); now.ready || !strings.HasPrefix(now.text, "not ready: draining") {
		t.Errorf("ready after the end: %v", now)
	}
}

func unixEndpoint(path string) endpoint.Endpoint {
	return endpoint.Endpoint{Name: path, Network: "unix", Address: path}
}

func redisEndpoint(s *proxytest.Redis) endpoint.Endpoint { return unixEndpoint(s.Socket) }

func TestKillScripts(t *testing.T) {
	busy, idle := proxytest.StartRedis(t, "--busy-reply-threshold", "1"), proxytest.StartRedis(t)
	masters := []endpoint.Endpoint{redisEndpoint(busy), redisEndpoint(idle)}
	if endpoint.KillScripts(t.Context(), masters) {
		t.Error("killed a script that nobody runs")
	}
	client := redis.NewClient(redisEndpoint(busy).Options())
	defer client.Close()
	ended := make(chan error, 1)
	go func() { ended <- client.Eval(context.Background(), "while true do end", nil).Err() }()
	for deadline := time.Now().Add(patience); !endpoint.KillScripts(t.Context(), masters); {
		if time.Now().After(deadline) {
			t.Fatal("the script cannot be killed")
		}
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "Script killed") {
		t.Errorf("the script ended with %v", err)
	}
}
